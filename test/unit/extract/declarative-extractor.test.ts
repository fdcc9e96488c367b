import { describe, expect, it } from 'vitest'
import { dataFrom, extractFrom, fieldFrom } from '../../support/extraction.ts'

describe('a field by selector', () => {
  it('is the text of the first match, white space collapsed', () => {
    expect(fieldFrom('h1', '<h1>\n A <b>B</b>\u00a0 C\n</h1><h1>D</h1>')).toBe('A B C')
    expect(fieldFrom('h1::text', '<h1>A<br>B</h1>')).toBe('A B')
    expect(fieldFrom('div', '<div><p>one</p><p>two</p><ul><li>a<li>b</ul></div>')).toBe('one two a b')
    expect(fieldFrom('h2', '<h1>A</h1>')).toBe(null)
  })

  it('of money is one number where a no-break space groups it, unless the author looks at the text first', () => {
    const html = '<p>PlayStation 5 <b>1&nbsp;299&nbsp;€</b></p>'
    expect(fieldFrom('{ select: p, type: money }', html)).toEqual({ amount: '1299.00', currency: 'EUR' })
    expect(fieldFrom("{ select: p, match: '(\\d \\d+ €)$', type: money }", html)).toEqual({ amount: '1299.00', currency: 'EUR' })
  })

  it.each([
    ['<span>iPhone 15</span>&nbsp;<span>999&nbsp;€</span>', null],
    ['<span>Size 42</span>&nbsp;<span>199 €</span>', null],
    ['<b>Gr. 42</b>&nbsp;<b>129,00 €</b>', null],
    ['Windows 11&nbsp;<b>139,00 €</b>', null],
    ['<b>Windows 11</b>&nbsp;139,00 €', null],
    ['<span>€ 12</span>&nbsp;<span>500 ml</span>', null],
    // One article at 299 is written like this as well.
    ['<b>1</b>&nbsp;299,00&nbsp;€', null],
    ['<b>1&nbsp;299</b>&nbsp;<i>€</i>', '1299.00'],
    ['PlayStation 5 <b>1&nbsp;299</b>&nbsp;<i>€</i>', '1299.00'],
  ])('of money is not grouped by a no-break space between elements: %s', (html, amount) => {
    expect(fieldFrom('{ select: p, type: money }', `<p>${html}</p>`)).toEqual(amount === null ? null : { amount, currency: 'EUR' })
  })

  it('of money has every space as the same one where the author looks first, wherever the text stands', () => {
    const price = 'PlayStation 5 1&nbsp;299 €'
    const html = `<meta name=p content="${price}"><p data-p="${price}">`
    for (const place of ['select: p, attr: data-p', 'meta: p']) {
      expect(fieldFrom(`{ ${place}, type: money }`, html)).toEqual({ amount: '1299.00', currency: 'EUR' })
      expect(fieldFrom(`{ ${place}, match: '(.+)', type: money }`, html)).toBeNull()
      expect(fieldFrom(`{ ${place}, transform: [trim], type: money }`, html)).toBeNull()
    }
  })

  it('C100: leaves out what is no text of the page', () => {
    const html = '<div id=d>ciao<script>f()</script><style>p{}</style><noscript><b>no</b></noscript><template>t</template></div>'
    expect(fieldFrom('"#d"', html)).toBe('ciao')
    expect(fieldFrom('script', html)).toBe('f()')
    expect(fieldFrom('style', html)).toBe('p{}')
    const hidden = '<p>a<!-- c --><svg><style>x{}</style><script>y()</script><text>b</text></svg></p>'
    expect(fieldFrom('p', hidden)).toBe('ab')
    expect(fieldFrom('{ select: "script, p", type: list }', '<p>a</p><script>if (a < b) f()</script>')).toEqual(['a', 'if (a < b) f()'])
  })

  it('takes an attribute in each of its forms', () => {
    const html = '<img class=cover src=" a.jpg " data-x="" checked>'
    expect(fieldFrom("'img.cover@src'", html)).toBe('a.jpg')
    expect(fieldFrom("'img::attr(src)'", html)).toBe('a.jpg')
    expect(fieldFrom('{ select: img, attr: src }', html)).toBe('a.jpg')
    expect(fieldFrom("'img@data-x'", html)).toBe(null)
    expect(fieldFrom("'img@constructor'", html)).toBe(null)
    expect(fieldFrom("'@lang'", '<html lang=de><p>a')).toBe('de')
    expect(fieldFrom("{ select: 'img@checked', type: boolean }", html)).toBe(true)
    expect(fieldFrom(`'a[href*="@"]@href'`, '<a href="x"></a><a href="m@h">t</a>')).toBe('m@h')
  })

  it('C092: finds the <tbody> that a browser puts into a table', () => {
    const table = '<table id=t><tr><td>1</td></tr></table>'
    const count = (selector: string): unknown => fieldFrom(`{ select: '${selector}', type: list }`, table)
    expect(count('#t > tr')).toBe(null)
    expect(count('#t > tbody > tr')).toEqual(['1'])
    expect(count('#t tr > td')).toEqual(['1'])
  })

  it('C094: keeps named references without semicolon in attributes, and decodes them in text', () => {
    expect(fieldFrom("'a@href'", '<a href="/x?a=1&para=2&copy=3&lt=4">')).toBe('/x?a=1&para=2&copy=3&lt=4')
    expect(fieldFrom("{ select: 'a@href', type: url }", '<a href="/x?a=1&para=2&copy=3&lt=4&amp;b=5">')).toBe(
      'http://shop.example.test/x?a=1&para=2&copy=3&lt=4&b=5',
    )
    expect(fieldFrom('p', '<p>&copy2024 &notit; &amp;lt;</p>')).toBe('©2024 ¬it; &lt;')
  })

  it('C096: reads numeric references from 128 to 159 as windows-1252', () => {
    expect(fieldFrom('p', '<p>&#128;10 &#150; &#147;x&#148; &#x99;</p>')).toBe('€10 – “x” ™')
    expect(fieldFrom("'a@title'", '<a title="&#8364;5 &#x80;6 &#146;">')).toBe('€5 €6 ’')
    expect(fieldFrom('p', '<p>a&#0;b&#xD800;c&#x110000;</p>')).toBe('a\ufffdb\ufffdc\ufffd')
  })

  it('C098: ends a paragraph before a block', () => {
    const block = '<p class=a><div class=price>9</div></p>'
    const count = (selector: string): unknown => fieldFrom(`{ select: '${selector}', type: list }`, block)
    expect(count('p.a > .price')).toBe(null)
    expect(count('.price')).toEqual(['9'])
    expect(fieldFrom("'p + ul > li'", '<p>a<ul><li>b</ul>')).toBe('b')
  })

  it('C090: keeps a fragment as it is only where the extractor says so', () => {
    const read = (html: string, selector: string): unknown =>
      dataFrom(`name: t\nversion: 1\nparse: fragment\nfields: { x: '${selector}' }`, html)
    const row = '<tr><td>1</td></tr>'
    expect(read(row, 'td')).toEqual([{ x: '1' }])
    expect(fieldFrom('td', row)).toBe(null)
    expect(read('<td>1</td><td>2</td>', 'td + td')).toEqual([{ x: '2' }])
    expect(read('<tbody><tr><th>h', 'tbody > tr > th')).toEqual([{ x: 'h' }])
    expect(read('<option>o</option>', 'option')).toEqual([{ x: 'o' }])
    expect(read('<caption>c</caption>', 'caption')).toEqual([{ x: 'c' }])
  })

  it('C106: resolves URLs against the base of the page, which is resolved against its final URL', () => {
    expect(fieldFrom("{ select: 'a@href', type: url }", '<a href="p">', 'http://example.test/new/dir/')).toBe(
      'http://example.test/new/dir/p',
    )
    expect(fieldFrom("{ select: 'a@href', type: url }", '<base href="/b/"><a href="p">')).toBe('http://shop.example.test/b/p')
    expect(fieldFrom("{ select: 'a@href', type: url }", '<base href="http://["><a href="p">')).toBe('http://shop.example.test/p/p')
    const none = '<template><base href="/t/"></template><svg><base href="/s/"></base></svg>'
    expect(fieldFrom("{ select: 'a@href', type: url }", `${none}<a href="p">`)).toBe('http://shop.example.test/p/p')
    const late = `${none}<svg><foreignObject><base href="/b/"></foreignObject></svg><a href="p">`
    expect(fieldFrom("{ select: 'a@href', type: url }", late)).toBe('http://shop.example.test/b/p')
    expect(fieldFrom("{ select: 'img@srcset', type: list, items: url }", '<img srcset="/w_3,h_2/a.jpg 3w, /b.jpg">')).toEqual([
      'http://shop.example.test/w_3,h_2/a.jpg',
      'http://shop.example.test/b.jpg',
    ])
    expect(fieldFrom("{ select: 'img@data-srcset', type: url }", '<img data-srcset="/a,1.jpg 1x, /b.jpg 2x">')).toBe(
      'http://shop.example.test/a,1.jpg',
    )
  })

  it('matches a pattern: its first group, or all of it', () => {
    expect(fieldFrom("{ select: p, match: '(\\d+) left', type: int }", '<p>12 of 40 left</p>')).toBe(40)
    expect(fieldFrom("{ select: p, match: '\\p{Lu}+' }", '<p>ab ÄÖ</p>')).toBe('ÄÖ')
    expect(fieldFrom("{ select: p, match: '(?i)IN stock', type: boolean }", '<p>In Stock</p>')).toBe(true)
    expect(fieldFrom("{ select: p, match: 'in stock', type: boolean }", '<p>sold out</p>')).toBe(false)
    expect(fieldFrom("{ select: p, match: '[a\\-z]' }", '<p>-</p>')).toBe('-')
  })

  it('matches a pattern of alternatives: the group of the one that matched, and for a boolean or a condition that one did', () => {
    const stock = "match: '(?i)(in stock)|(available)'"
    expect(fieldFrom(`{ select: p, ${stock}, type: boolean }`, '<p>available</p>')).toBe(true)
    expect(fieldFrom(`{ select: p, ${stock} }`, '<p>Available</p>')).toBe('Available')
    expect(fieldFrom(`{ select: b, when: { select: p, ${stock} } }`, '<b>x</b><p>available</p>')).toBe('x')
    expect(fieldFrom(`{ select: b, when: { select: p, ${stock}, not: true } }`, '<b>x</b><p>available</p>')).toBeNull()
    const unused = "match: 'sold( out)?'"
    expect(fieldFrom(`{ select: p, ${unused}, type: boolean }`, '<p>sold</p>')).toBe(true)
    expect(fieldFrom(`{ select: b, when: { select: p, ${unused} } }`, '<b>x</b><p>sold</p>')).toBe('x')
    expect(fieldFrom(`{ select: p, ${unused} }`, '<p>sold</p>')).toBeNull()
  })

  it.each([
    ['Price(?: (\\d+))?( EUR)?', null],
    ['(?<amount>\\d+)?(?:Price)( EUR)', null],
    ['[(|]|\\(|(\\d+)? (EUR)', null],
    ['(Cost)|(P(?!x)(r|R)ice)(.*)', 'Price'],
    ['[)](a)|(?<=Price )((E)UR)', 'EUR'],
    ['(Cost)|Price', null],
  ])('takes no later group in place of the first one of an alternative: %s', (pattern, expected) => {
    expect(fieldFrom(`{ select: p, match: '${pattern}' }`, '<p>Price EUR</p>')).toBe(expected)
  })

  it('takes the first of several that gives a value of its type', () => {
    const field = '{ any: [{ jsonld: Product.offers.price }, .sale-price, .price], type: decimal, scale: 2 }'
    expect(fieldFrom(field, '<p class=price>9,90</p>')).toBe('9.90')
    expect(fieldFrom(field, '<p class=sale-price>soon</p><p class=price>9,90</p>')).toBe('9.90')
    expect(fieldFrom(field, '<p class=sale-price>8</p><p class=price>9,90</p>')).toBe('8.00')
  })

  it('gives the HTML inside an element', () => {
    expect(fieldFrom('{ select: div, type: html }', '<div> <b>x</b> &amp; y </div>')).toBe('<b>x</b> &amp; y')
  })

  it('filters by position as cheerio does', () => {
    expect(fieldFrom("'li:eq(1)'", '<ul><li>a<li>b<li>c</ul>')).toBe('b')
    expect(fieldFrom("'li:last'", '<ul><li>a<li>b<li>c</ul>')).toBe('c')
  })
})

describe('an empty field', () => {
  it('is null, or its default, or fails the page where it is required', () => {
    expect(fieldFrom('{ select: h2 }', '<p>')).toBe(null)
    expect(fieldFrom('{ select: h2, type: int, default: 7 }', '<p>')).toBe(7)
    expect(fieldFrom('{ select: h2, type: list }', '<p>')).toBe(null)
    expect(extractFrom('name: t\nversion: 1\nfields: { a: p, x: { select: h2, required: true } }', '<p>y')).toMatchObject({
      ok: false,
      code: 'EXTRACT_FIELD_MISSING',
      field: 'x',
    })
  })

  it('is also one whose value does not have its type; that is counted, and fails a required one', () => {
    const html = '<p>soon</p>'
    expect(extractFrom('name: t\nversion: 1\nfields: { x: { select: p, type: int } }', html)).toMatchObject({
      ok: true,
      invalid: { x: 1 },
      items: [{ data: { x: null } }],
    })
    const failed = extractFrom('name: t\nversion: 1\nfields: { x: { select: p, type: int, required: true } }', html)
    expect(failed).toMatchObject({ ok: false, code: 'EXTRACT_FIELD_INVALID', field: 'x' })
    expect(failed.ok ? '' : failed.message).toContain('"soon"')
  })

  it('leaves what is invalid out of a list and counts it once', () => {
    const list = 'name: t\nversion: 1\nfields: { x: { select: li, type: list, items: int } }'
    expect(extractFrom(list, '<li>1<li>x<li>3')).toMatchObject({ ok: true, invalid: { x: 1 }, items: [{ data: { x: [1, 3] } }] })
    expect(extractFrom(list, '<li>x')).toMatchObject({ ok: true, invalid: { x: 1 }, items: [{ data: { x: null } }] })
  })
})

describe('values without the type of their field', () => {
  it('are counted by their field, wherever in a table or list they stand', () => {
    const table = `name: t
version: 1
fields:
  rows: { select: tr, type: list, fields: { v: { select: td, type: int }, all: { select: i, type: list, items: int } } }`
    const row = '<tr><td>many</td><td><i>a</i></td></tr>'
    const text = extractFrom(table, `<table>${row.repeat(30)}<tr><td>1</td></tr></table>`)
    expect(text).toMatchObject({ ok: true, invalid: { 'rows.v': 30, 'rows.all': 30 } })
  })
})

describe('records of a page', () => {
  const items = 'name: t\nversion: 1\neach: li\nfields: { name: .n, price: { select: .p, type: int } }'

  it('C108: are one per element, each with its own fields', () => {
    const html = '<li><b class=n>A</b><i class=p>1</i></li><li><b class=n>B</b></li><li><b class=n>C</b><i class=p>3</i></li>'
    expect(dataFrom(items, html)).toEqual([
      { name: 'A', price: 1 },
      { name: 'B', price: null },
      { name: 'C', price: 3 },
    ])
  })

  it('C108: do not leak from an element within another into the outer one', () => {
    const html = '<ul><li><ul><li><b class=n>inner</b><i class=p>2</i></li></ul><b class=n>outer</b></li></ul>'
    expect(dataFrom(items, html)).toEqual([
      { name: 'outer', price: null },
      { name: 'inner', price: 2 },
    ])
  })

  it('have no text of an element within another, wherever it stands in it', () => {
    const text = 'name: t\nversion: 1\neach: li\nfields: { x: ., y: .d }'
    expect(dataFrom(text, '<ul><li>A <div class=d>a <ul><li>B <div class=d>b</div></li></ul> c</div></li></ul>')).toEqual([
      { x: 'A a c', y: 'a c' },
      { x: 'B b', y: 'b' },
    ])
    const specs = 'name: t\nversion: 1\neach: .item\nfields: { s: { select: .spec, type: list, fields: { n: .n } } }'
    const html =
      '<div class=item><div class=spec><i class=n>1</i><div class=item><div class=spec><i class=n>2</i></div></div></div><div class=spec><div class=item><i class=n>3</i></div></div></div>'
    expect(dataFrom(specs, html)).toEqual([{ s: [{ n: '1' }] }, { s: [{ n: '2' }] }, { s: null }])
  })

  it('take selectors as browsers do: what is around an element counts for the front of one', () => {
    const html = '<div class=list><div class=card><h3>A</h3><p>x</p></div><div class=card><h3>B</h3></div></div><p>y</p>'
    const text =
      "name: t\nversion: 1\neach: .card\nfields: { a: '.card h3', b: '.list .card > h3', p: p, own: ':scope > h3', mixed: 'b, > h3' }"
    expect(dataFrom(text, html)).toEqual([
      { a: 'A', b: 'A', p: 'x', own: 'A', mixed: 'A' },
      { a: 'B', b: 'B', p: null, own: 'B', mixed: 'B' },
    ])
  })

  it('take one value of structured data from the outermost node of its type', () => {
    const html =
      '<script type="application/ld+json">{"@type":"Product","name":"A","isSimilarTo":{"@type":"Product","name":"S","sku":"9"}}</script>'
    expect(fieldFrom('{ jsonld: Product.sku }', html)).toBe(null)
    expect(fieldFrom('{ jsonld: Product.sku, type: list }', html)).toEqual(['9'])
    expect(fieldFrom('{ jsonld: Product.gtin }', html.replace('"A"', '"A","gtin":12345678901234567890'))).toBe('12345678901234567890')
  })

  it('have as key a field, the URL, or the URL and their number', () => {
    const keys = (text: string, html: string): unknown => {
      const extracted = extractFrom(text, html, 'http://a.example.test/1')
      return extracted.ok ? extracted.items.map(({ entityKey }) => entityKey) : extracted.code
    }
    expect(keys('name: t\nversion: 1\nfields: { x: p }', '<p>1')).toEqual(['http://a.example.test/1'])
    expect(keys('name: t\nversion: 1\neach: p\nfields: { x: ::text }', '<p>1<p>2')).toEqual([
      'http://a.example.test/1#0',
      'http://a.example.test/1#1',
    ])
    expect(keys('name: t\nversion: 1\neach: p\nkey: x\nfields: { x: { select: ., type: int } }', '<p>1<p>2')).toEqual(['1', '2'])
    expect(keys('name: t\nversion: 1\neach: p\nkey: x\nfields: { x: { select: ., type: int } }', '<p>1<p>-')).toBe('EXTRACT_KEY_MISSING')
    expect(keys('name: t\nversion: 1\neach: p\nfields: { x: ::text }', '<b>')).toEqual([])
  })

  it('nest: a record or a list of them, without those that are all null', () => {
    const table = '<table><tr><td></td></tr><tr><th>Size</th><td>L</td></tr><tr><th>Colour</th></tr></table>'
    expect(fieldFrom("{ select: 'table tr', type: list, fields: { name: th, value: td } }", table)).toEqual([
      { name: 'Size', value: 'L' },
      { name: 'Colour', value: null },
    ])
    expect(fieldFrom("{ select: 'table tr:nth-child(2)', fields: { name: th } }", table)).toEqual({ name: 'Size' })
    expect(fieldFrom("{ select: '.none', fields: { name: { select: th, required: true } } }", table)).toBe(null)
    expect(
      extractFrom(
        'name: t\nversion: 1\nfields: { s: { select: tr, type: list, fields: { name: { select: th, required: true } } } }',
        table,
      ),
    ).toMatchObject({
      code: 'EXTRACT_FIELD_MISSING',
      field: 's[0].name',
    })
  })

  it('nest without those that are nothing but nulls and defaults, though one may have found what is the default', () => {
    const field = '{ select: tr, type: list, fields: { n: td, q: { select: b, type: int, default: 0 } } }'
    expect(fieldFrom(field, '<table><tr><th>N<tr><td>A<tr><td><b>0</b><tr><td></table>')).toEqual([
      { n: 'A', q: 0 },
      { n: '0', q: 0 },
    ])
    expect(fieldFrom(field, '<table><tr><th><b>0</b></table>')).toEqual([{ n: null, q: 0 }])
    const outer = `{ select: body, fields: { l: ${field} } }`
    expect(fieldFrom(outer, '<table><tr><th>N</table>')).toBeNull()
  })

  it('come from the element itself and its children by relative selectors', () => {
    const html = '<div data-id=1><p>a<span><p>b</p></span></div><div data-id=2><section><p>c</section></div>'
    const text = "name: t\nversion: 1\neach: div\nfields: { id: '@data-id', p: { select: '> p' }, all: { select: p, type: list } }"
    expect(dataFrom(text, html)).toEqual([
      { id: '1', p: 'a', all: ['a', 'b'] },
      { id: '2', p: null, all: ['c'] },
    ])
  })
})
