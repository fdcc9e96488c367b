import type { Document } from 'domhandler'
import { describe, expect, it } from 'vitest'
import { createPageSelectors, PageView } from '../../../../src/extract/page-view.ts'
import { createPageParser } from '../../../../src/extract/parse-page.ts'
import { elementsById, readMicrodata } from '../../../../src/extract/sources/microdata.ts'
import { dataFrom, fieldFrom } from '../../../support/extraction.ts'

const notesOf = (html: string) =>
  createPageParser().withPage(
    html,
    { mode: 'document' },
    ({ root }) => new PageView(root, 'http://a.test/', createPageSelectors()).jsonLd.notes,
  )

describe('microdata', () => {
  it('C122: gives a property to the nearest item around it', () => {
    const html =
      '<div itemscope itemtype="http://schema.org/Product"><span itemprop=name>P</span><div itemprop=brand itemscope itemtype="http://schema.org/Brand"><span itemprop=name>B</span></div><b itemscope><i itemprop=name>X</i></b></div>'
    expect(fieldFrom('{ microdata: Product.name, type: list }', html)).toEqual(['P'])
    expect(fieldFrom('{ microdata: Product.brand.name }', html)).toBe('B')
    expect(fieldFrom('{ microdata: Brand.name }', html)).toBe('B')
    const properties = (root: Document) => readMicrodata(root, elementsById(root)).map((item) => Object.keys(item))
    // The one without itemprop is a separate top-level item.
    expect(createPageParser().withPage(html, { mode: 'document' }, ({ root }) => properties(root))).toEqual([
      ['@type', 'name', 'brand'],
      ['name'],
    ])
  })

  it('takes values from the attributes that the standard names', () => {
    const html =
      '<div itemscope itemtype="https://schema.org/Product"><meta itemprop=sku content=S1><a itemprop=url href="/x">t</a><time itemprop=made datetime=2024-05-06>May</time><span itemprop=price content="9.90">9,90 €</span></div>'
    expect(fieldFrom('{ microdata: Product.sku }', html)).toBe('S1')
    expect(fieldFrom('{ microdata: Product.url, type: url }', html)).toBe('http://shop.example.test/x')
    expect(fieldFrom('{ microdata: Product.made, type: date }', html)).toBe('2024-05-06')
    expect(fieldFrom('{ microdata: Product.price, type: decimal, scale: 2 }', html)).toBe('9.90')
  })

  it('reads what people see as a selector does: prices, paragraphs and no scripts', () => {
    const product = (inner: string) => `<div itemscope itemtype="https://schema.org/Product">${inner}</div>`
    const money = '{ microdata: Product.price, type: money, currency: EUR }'
    expect(fieldFrom(money, product('<span itemprop=price>12<sup>99</sup></span>'))).toEqual({ amount: '12.99', currency: 'EUR' })
    const both = product('<p itemprop=price><del>20</del><ins>15</ins></p>')
    expect(fieldFrom(money, both)).toEqual(fieldFrom('{ select: p, type: money, currency: EUR }', both))
    const offer = '<p itemprop=offers itemscope><b itemprop=price>1.299,00</b> <i itemprop=priceCurrency>EUR</i></p>'
    expect(fieldFrom('{ microdata: Product.offers, type: money }', product(offer))).toEqual({ amount: '1299.00', currency: 'EUR' })
    const text = product('<div itemprop=description><p>One.</p><p>Two.</p><script>f()</script></div>')
    expect(fieldFrom('{ microdata: Product.description }', text)).toBe('One. Two.')
    expect(fieldFrom('{ microdata: Product.description, type: html }', text)).toContain('<p>Two.</p>')
  })

  it('has a decimal point where a program wrote it alone', () => {
    const product = (inner: string) => `<div itemscope itemtype="https://schema.org/Product">${inner}</div>`
    const weight = '{ microdata: Product.weight, type: double, locale: de }'
    expect(fieldFrom(weight, product('<b itemprop=weight>1.299</b>'))).toBe(1299)
    expect(fieldFrom(weight, product('<data itemprop=weight value=1.299>1,3</data>'))).toBe(1.299)
    const later = '<meta itemprop=rating content=4.125><b itemprop=rating>4,1</b>'
    expect(fieldFrom('{ microdata: Product.rating, type: double }', product(later))).toBe(4.125)
    expect(fieldFrom('{ microdata: Product.rating, type: list, items: double, locale: de }', product(later))).toEqual([4.125, 4.1])
  })

  it.each([
    ['<meta itemprop=price content="19.990"><span itemprop=price>19,99 €</span>', 'type: decimal, scale: 2', '19.99'],
    ['<meta itemprop=price content="19.99"><span itemprop=price>19,99 €</span>', 'type: decimal, scale: 2, locale: de', '19.99'],
    ['<span itemprop=price>1.299 €</span><meta itemprop=price content="1.299">', 'type: decimal, scale: 2, locale: de', '1299.00'],
    ['<meta itemprop=price content="1.299"><b itemprop=price>x</b>', "type: decimal, scale: 3, match: '[\\d.]+', locale: de", '1.299'],
    ['<b itemprop=price>1.299</b>', "type: decimal, scale: 3, transform: [{ suffix: ' ' }, trim, { join: ' ' }], locale: de", '1299.000'],
    ['<b itemprop=price>1.299</b>', "type: decimal, scale: 3, match: '[\\d.]+', transform: { split: ' ' }, locale: de", '1299.000'],
  ])('was written by a program or for people, each value by itself: %s; %s', (inner, type, expected) => {
    const microdata = `<div itemscope itemtype="https://schema.org/Product">${inner}</div>`
    expect(fieldFrom(`{ microdata: Product.price, ${type} }`, microdata)).toBe(expected)
    const rdfa = microdata.replace('itemscope itemtype', 'typeof').replaceAll('itemprop', 'property')
    expect(fieldFrom(`{ rdfa: Product.price, ${type} }`, rdfa.replace('https://schema.org/', ''))).toBe(expected)
  })

  it('of an offer is that of the first one, whatever wrote the second', () => {
    const offer = (price: string) => `<p itemprop=offers itemscope>${price}<meta itemprop=priceCurrency content=EUR></p>`
    const offers = offer('<meta itemprop=price content="1299.00">') + offer('<b itemprop=price>1.399,00</b>')
    const html = `<div itemscope itemtype="https://schema.org/Product">${offers}</div>`
    const [first, second] = ['1299.00', '1399.00'].map((amount) => ({ amount, currency: 'EUR' }))
    expect(fieldFrom('{ microdata: Product.offers, type: money, locale: de }', html)).toEqual(first)
    expect(fieldFrom('{ microdata: Product.offers, type: list, items: money, locale: de }', html)).toEqual([first, second])
  })

  const cards = ['A', 'B'].map(
    (name) =>
      `<article itemscope itemtype="http://schema.org/Product"><b itemprop=name>${name}</b><p itemprop=brand itemscope><i itemprop=name>of ${name}</i></p><div class=offer itemprop=offers itemscope itemtype="http://schema.org/Offer"><b itemprop=price>${name}9</b></div></article>`,
  )

  it('is that of the element of a record: items that begin at it or within it', () => {
    const fields =
      'fields: { name: { microdata: Product.name }, brand: { microdata: Product.brand }, all: { microdata: Product.name, type: list } }'
    const found = ['A', 'B'].map((name) => ({ name, brand: `of ${name}`, all: [name] }))
    expect(dataFrom(`name: t\nversion: 1\neach: article\n${fields}`, cards.join(''))).toEqual(found)
    expect(dataFrom(`name: t\nversion: 1\neach: li\n${fields}`, `<ul><li>${cards.join('<li>')}</ul>`)).toEqual(found)
    expect(fieldFrom('{ select: .offer, type: list, fields: { price: { microdata: Offer.price } } }', cards.join(''))).toEqual([
      { price: 'A9' },
      { price: 'B9' },
    ])
  })

  it('of an element within an item is what that item says there', () => {
    const html = `<div itemscope itemtype="http://schema.org/Product"><h1 itemprop=name>P</h1>
      <p class=row><b itemprop=color>red</b><span itemscope itemtype="http://schema.org/Thing"><i itemprop=color>x</i></span></p><p class=row itemprop=color>blue</p>
      <p class=row><span itemprop=isRelatedTo itemscope itemtype="http://schema.org/Product"><b itemprop=name>R</b></span></p></div>`
    const fields = 'color: { microdata: Product.color }, name: { microdata: Product.name }'
    expect(fieldFrom(`{ select: .row, type: list, fields: { ${fields} } }`, html)).toEqual([
      { color: 'red', name: null },
      { color: 'blue', name: null },
      { color: null, name: 'R' },
    ])
  })

  it('reads an element once that itemref names twice, within another one, or within its item', () => {
    const html =
      '<div itemscope itemtype="http://schema.org/A" itemref="a b a c"><i id=c itemprop=tag>C</i></div><p id=a><b id=b itemprop=tag>B</b></p>'
    expect(fieldFrom('{ microdata: A.tag, type: list }', html)).toEqual(['C', 'B'])
  })

  it('follows itemref, and ends where items refer to each other', () => {
    const html =
      '<div itemscope itemtype="http://schema.org/A" itemref="n loop" id=loop></div><p id=n itemprop=name>N</p><div id=x itemscope itemprop=self itemref=x></div>'
    expect(fieldFrom('{ microdata: A.name }', html)).toBe('N')
  })

  it('costs a bounded time where references multiply: each of these items refers to two more', () => {
    const levels = Array.from({ length: 40 }, (_, level) =>
      ['a', 'b'].map((id) => `<i id=${id}${level} itemscope itemprop=x itemref="a${level + 1} b${level + 1}"></i>`).join(''),
    )
    const html = `<p itemscope itemtype="http://schema.org/A" itemref=a0><b itemprop=name>N</b></p>${levels.join('')}`
    expect(fieldFrom('{ microdata: A.name }', html)).toBe('N')
  })
})

describe('meta', () => {
  const html =
    '<meta property="og:image" content="1.jpg"><meta property="og:image:width" content=300><meta property="og:image" content="2.jpg"><meta property="og:image" content="3.jpg"><meta property="og:image:height" content=1000><meta name="Description" content=" d  e ">'

  it('is found by property or name, without case', () => {
    expect(fieldFrom('{ meta: description }', html)).toBe('d e')
    expect(fieldFrom('{ meta: "og:image", type: url }', html)).toBe('http://shop.example.test/p/1.jpg')
    expect(fieldFrom('{ meta: "og:image", type: list }', html)).toEqual(['1.jpg', '2.jpg', '3.jpg'])
    expect(fieldFrom('{ meta: nothing }', html)).toBe(null)
  })

  it('is found by each of its names', () => {
    const both = '<meta name="image" property="og:image twitter:image" content="1.jpg"><meta property="" name="author" content="A">'
    expect(['image', 'og:image', 'twitter:image', 'author'].map((name) => fieldFrom(`{ meta: "${name}" }`, both))).toEqual([
      '1.jpg',
      '1.jpg',
      '1.jpg',
      'A',
    ])
  })

  it('C120: keeps structured properties with the image before them', () => {
    const field =
      '{ meta: "og:image", type: list, fields: { url: { meta: "og:image" }, width: { meta: "og:image:width", type: int }, height: { meta: "og:image:height", type: int } } }'
    expect(fieldFrom(field, html)).toEqual([
      { url: '1.jpg', width: 300, height: null },
      { url: '2.jpg', width: null, height: null },
      { url: '3.jpg', width: null, height: 1000 },
    ])
  })
})

describe('JSON-LD within records of a page', () => {
  const script = (name: string) => `<script type="application/ld+json">{"@type":"Product","name":"${name}"}</script>`
  const field = '{ select: li, type: list, fields: { n: { jsonld: Product.name } } }'

  it('is that of the scripts within the element, or of the page where it has none', () => {
    expect(fieldFrom(field, `${script('page')}<ul><li>${script('A')}<li>${script('B')}<li>x</ul>`)).toEqual([
      { n: 'A' },
      { n: 'B' },
      { n: 'page' },
    ])
  })
})

describe('structured data as nested records', () => {
  it('gives a record per node', () => {
    const html =
      '<script type="application/ld+json">{"@type":"Product","offers":[{"price":"1.50","seller":{"name":"S"}},{"price":2}]}</script>'
    const field =
      '{ jsonld: Product.offers, type: list, fields: { price: { jsonld: price, type: decimal, scale: 2 }, seller: { jsonld: seller.name } } }'
    expect(fieldFrom(field, html)).toEqual([
      { price: '1.50', seller: 'S' },
      { price: '2.00', seller: null },
    ])
  })

  it('C118: ends a script at its end tag, whatever is in it', () => {
    const html =
      '<script type="application/ld+json">{"d":"a </script><b>x</b>"}</script><script type="application/ld+json">{"@type":"B","n":1}</script>'
    expect(dataFrom('name: t\nversion: 1\nfields:\n  n: { jsonld: B.n, type: int }\n', html)).toEqual([{ n: 1 }])
    expect(notesOf(html)).toEqual([{ block: 0, kind: 'broken', detail: expect.stringContaining('JSON') as string }])
    const escaped = html.replace('a </script><b>x</b>', 'a <\\/script>').replace('{"d"', '{"@type":"A","d"')
    expect(fieldFrom('{ jsonld: A.d }', escaped)).toBe('a </script>')
    expect(notesOf(escaped)).toEqual([])
  })
})

describe('a URL of structured data', () => {
  const url = (image: unknown): unknown =>
    fieldFrom(
      '{ jsonld: Product.image, type: url }',
      `<script type="application/ld+json">${JSON.stringify({ '@type': 'Product', image })}</script>`,
    )

  it('is that which a node names, or is known by, and never made of its name', () => {
    expect(url([{ '@type': 'ImageObject', name: 'front view', url: '/u.jpg' }])).toBe('http://shop.example.test/u.jpg')
    expect(url({ name: 'x', contentUrl: ['/c.jpg'] })).toBe('http://shop.example.test/c.jpg')
    expect(url({ name: 'x', url: { '@id': '/i.jpg', name: 'y' } })).toBe('http://shop.example.test/i.jpg')
    expect(url({ name: 'x', '@id': '/id.jpg' })).toBe('http://shop.example.test/id.jpg')
    expect(url({ '@value': '/v.jpg' })).toBe('http://shop.example.test/v.jpg')
    expect(url({ name: 'x', '@id': '_:b0' })).toBeNull()
    expect(url({ name: 'front view' })).toBeNull()
  })

  it('of microdata is one as well', () => {
    const brand = (inner: string) =>
      `<div itemscope itemtype="http://schema.org/Product"><div itemprop=brand itemscope><b itemprop=name>ACME</b>${inner}</div></div>`
    expect(fieldFrom('{ microdata: Product.brand, type: url }', brand('<a itemprop=url href=/acme>x</a>'))).toBe(
      'http://shop.example.test/acme',
    )
    expect(fieldFrom('{ microdata: Product.brand, type: url }', brand(''))).toBeNull()
  })
})

describe('money of structured data', () => {
  it('is that of the node which a reference stands for, as is a name', () => {
    const graph = [
      { '@id': '#p', '@type': 'Product', offers: { '@id': '#o' }, brand: { '@id': '#b' } },
      { '@id': '#o', '@type': 'Offer', price: '12.99', priceCurrency: 'EUR' },
      { '@id': '#b', '@type': 'Brand', name: 'B' },
    ]
    const html = `<script type="application/ld+json">${JSON.stringify({ '@graph': graph })}</script>`
    expect(fieldFrom('{ jsonld: Product.offers, type: money }', html)).toEqual({ amount: '12.99', currency: 'EUR' })
    expect(fieldFrom('{ jsonld: Product.brand }', html)).toBe('B')
  })

  const offer =
    '<script type="application/ld+json">{"@type":"Product","offers":[{"@type":"Offer","price":1299.5,"priceCurrency":"EUR"}]}</script>'

  it('is a node with its amount and its currency', () => {
    expect(fieldFrom('{ jsonld: Product.offers, type: money }', offer)).toEqual({ amount: '1299.50', currency: 'EUR' })
    expect(fieldFrom('{ jsonld: Product.offers, type: list, items: money }', offer)).toEqual([{ amount: '1299.50', currency: 'EUR' }])
  })

  it('has its currency from wherever the extractor says', () => {
    const field = '{ jsonld: Product.offers.price, type: money, currency: { jsonld: Product.offers.priceCurrency } }'
    expect(fieldFrom(field, offer)).toEqual({ amount: '1299.50', currency: 'EUR' })
    const meta = '<meta property="product:price:amount" content="5.00"><meta property="product:price:currency" content="usd">'
    const named = '{ meta: "product:price:amount", type: money, currency: { meta: "product:price:currency" } }'
    expect(fieldFrom(named, meta)).toEqual({ amount: '5.00', currency: 'USD' })
    expect(fieldFrom('{ meta: "product:price:amount", type: money, required: true }', meta)).toBe('EXTRACT_FIELD_INVALID')
  })
})

describe('a number of JSON', () => {
  const product = (offer: object): string =>
    `<script type="application/ld+json">${JSON.stringify({ '@type': 'Product', offers: offer })}</script>`

  it('has a decimal point in every language, as the amount of a node too', () => {
    const html = product({ price: 1.659, priceCurrency: 'EUR' })
    expect(fieldFrom('{ jsonld: Product.offers, type: money, scale: 3, locale: de }', html)).toEqual({ amount: '1.659', currency: 'EUR' })
    expect(fieldFrom('{ jsonld: Product.offers.price, type: double, locale: de }', html)).toBe(1.659)
    expect(fieldFrom('{ jsonld: Product.offers, type: money, locale: de, required: true }', html)).toBe('EXTRACT_FIELD_INVALID')
    expect(
      fieldFrom('{ jsonld: Product.offers, type: list, items: money, locale: de }', product([{ price: 1e-2, currency: 'usd' }])),
    ).toEqual([{ amount: '0.01', currency: 'USD' }])
  })

  it('stays one where a transform picks it', () => {
    const html = product([{ price: 1.659 }, { price: 1.25 }, { price: 1.659 }])
    const field = (steps: string) => `{ jsonld: Product.offers.price, type: list, items: double, locale: de, transform: [${steps}] }`
    expect(fieldFrom(field('unique, reverse'), html)).toEqual([1.25, 1.659])
    expect(fieldFrom(field('sort, { items: [1, 3] }'), html)).toEqual([1.659, 1.659])
    expect(fieldFrom(field('{ item: -1 }'), html)).toEqual([1.659])
  })

  it('is that of the node, in the currency of the node, of the place that the extractor names, or of the extractor', () => {
    const field = '{ jsonld: Product.offers, type: money, currency: { meta: c } }'
    const meta = '<meta name=c content=CHF>'
    expect(fieldFrom(field, `${meta}${product({ price: 5, priceCurrency: 'EUR' })}`)).toEqual({ amount: '5.00', currency: 'EUR' })
    expect(fieldFrom(field, `${meta}${product({ price: 5, priceCurrency: 'Euro' })}`)).toEqual({ amount: '5.00', currency: 'EUR' })
    expect(fieldFrom(field, `${meta}${product({ price: 5, priceCurrency: 'Taler' })}`)).toEqual({ amount: '5.00', currency: 'CHF' })
    expect(fieldFrom(field, `${meta}${product({ price: 5 })}`)).toEqual({ amount: '5.00', currency: 'CHF' })
    expect(fieldFrom('{ jsonld: Product.offers, type: money, currency: AUD }', product({ price: '$5', priceCurrency: '$' }))).toEqual({
      amount: '5.00',
      currency: 'AUD',
    })
  })

  it('can be looked at with its currency by match and transform', () => {
    const html = product({ price: 5, priceCurrency: 'EUR' })
    expect(fieldFrom("{ jsonld: Product.offers, type: money, match: '(.*) EUR', currency: USD }", html)).toEqual({
      amount: '5.00',
      currency: 'USD',
    })
    expect(fieldFrom("{ jsonld: Product.offers, type: money, transform: { replace: ['EUR', 'USD'] } }", html)).toEqual({
      amount: '5.00',
      currency: 'USD',
    })
  })
})
