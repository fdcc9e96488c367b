import { describe, expect, it } from 'vitest'
import { dataFrom, fieldFrom } from '../../../support/extraction.ts'

const html = `<div vocab="https://schema.org/" typeof="Product" resource="#p">
  <h1 property="name">Lamp</h1><img property="image" src="/l.jpg"><a property="url" href="/lamp">x</a>
  <div property="offers" typeof="schema:Offer"><span property="schema:price" content="12.50">12,50 €</span><meta property="priceCurrency" content="EUR">
    <time property="validFrom" datetime="2024-05-06">May</time></div>
  <div property="brand" typeof="Brand"><b property="name">B</b></div>
</div>
<p resource="#p"><i property="sku">S1</i></p><div typeof="Organization"><b property="name legalName">Shop</b></div>`

describe('RDFa Lite', () => {
  it('gives a property to the nearest thing around it, by types without their vocabulary', () => {
    expect(fieldFrom('{ rdfa: Product.name }', html)).toBe('Lamp')
    expect(fieldFrom('{ rdfa: Product.brand.name }', html)).toBe('B')
    expect(fieldFrom('{ rdfa: Product.image, type: url }', html)).toBe('http://shop.example.test/l.jpg')
    expect(fieldFrom('{ rdfa: Product.url, type: url }', html)).toBe('http://shop.example.test/lamp')
    expect(fieldFrom('{ rdfa: Offer.validFrom, type: date }', html)).toBe('2024-05-06')
    expect(fieldFrom('{ rdfa: Organization.legalName }', html)).toBe('Shop')
  })

  it('has the text of an element whose URL is that of a relation, which words of HTML are not', () => {
    const crumb = (attributes: string) => `<p typeof="v:Breadcrumb"><a href="/tech-sci" ${attributes} property="v:title">Tech / Sci</a></p>`
    const title = (attributes: string) => fieldFrom('{ rdfa: Breadcrumb.title, type: list }', crumb(attributes))
    expect(title('rel="v:url"')).toEqual(['Tech / Sci'])
    expect(title('rev="v:child"')).toEqual(['Tech / Sci'])
    expect(title('rel="nofollow v:url" resource="/x" src="/y"')).toEqual(['Tech / Sci'])
    expect(title('rel="v:url" content="C"')).toEqual(['C'])
    expect(title('rel="v:url" datetime="2024"')).toEqual(['2024'])
    expect(title('rel="nofollow"')).toEqual(['/tech-sci'])
    expect(title('rel=""')).toEqual(['/tech-sci'])
  })

  it('reads what people see as a selector does', () => {
    const lamp = (inner: string) => `<div typeof=Product>${inner}</div>`
    expect(fieldFrom('{ rdfa: Product.price, type: money, currency: EUR }', lamp('<b property=price>12<sup>99</sup></b>'))).toEqual({
      amount: '12.99',
      currency: 'EUR',
    })
    expect(fieldFrom('{ rdfa: Product.text }', lamp('<div property=text><p>a</p><p>b</p><script>c</script></div>'))).toBe('a b')
    expect(fieldFrom('{ rdfa: Product.weight, type: double }', lamp('<b property=weight content=1.299>1,3</b>'))).toBe(1.299)
  })

  it('is that of the element of a record, or what is said there of the thing around it', () => {
    const page = ['A', 'B'].map((name) => `<li typeof=Product><b property=name>${name}</b><p><i property=sku>${name}1</i></p>`).join('')
    expect(fieldFrom('{ select: li, type: list, fields: { n: { rdfa: Product.name } } }', page)).toEqual([{ n: 'A' }, { n: 'B' }])
    expect(fieldFrom('{ select: li p, type: list, fields: { n: { rdfa: Product.sku }, m: { rdfa: Product.name } } }', page)).toEqual([
      { n: 'A1', m: null },
      { n: 'B1', m: null },
    ])
    const related =
      '<div typeof=Product><b property=name>P</b><p><i property=isRelatedTo typeof=Product><b property=name>R</b></i></p></div>'
    expect(fieldFrom('{ select: p, fields: { n: { rdfa: Product.name } } }', related)).toEqual({ n: 'R' })
  })

  it('adds what is said of a resource elsewhere', () => {
    expect(fieldFrom('{ rdfa: Product.sku }', html)).toBe('S1')
  })

  it('has a thing once that another one names', () => {
    const named = '<div typeof=A resource="#a"><b property=n>N</b></div><div typeof=B><i property=of typeof=A resource="#a"></i></div>'
    expect(fieldFrom('{ rdfa: A.n, type: list }', named)).toEqual(['N'])
  })

  it('is read as nested records and as money', () => {
    expect(fieldFrom('{ rdfa: Product.offers, type: money }', html)).toEqual({ amount: '12.50', currency: 'EUR' })
    expect(fieldFrom('{ rdfa: Product.offers, type: list, fields: { p: { rdfa: price, type: double } } }', html)).toEqual([{ p: 12.5 }])
  })

  it('ends where things refer to each other, and costs a bounded time', () => {
    const circle =
      '<div typeof=A resource="#a"><div property=b typeof=B resource="#b"><div property=a typeof=A resource="#a"><i property=n>N</i></div></div></div>'
    expect(fieldFrom('{ rdfa: A.n }', circle)).toBe('N')
    const nested = `${'<div typeof=A property=a>'.repeat(2_000)}<i property=n>x</i>`
    expect(fieldFrom('{ rdfa: A.n }', nested)).toBeNull()
    const repeated = `<div typeof=A>${'<p property=t>x'.repeat(3)}${'<b property=t>'.repeat(1_500)}${'y'.repeat(50_000)}</b>`
    expect(fieldFrom('{ rdfa: A.t }', repeated)).toBe('x')
  })

  it('is no node where nothing has a type, as with the meta tags of Open Graph', () => {
    expect(fieldFrom('{ rdfa: Product.title }', '<meta property=og:title content=x>')).toBeNull()
  })
})

describe('links of a page', () => {
  const head =
    '<base href="/dir/"><link rel="stylesheet" href=a.css><link rel="Canonical" href="p?x=1"><link rel="alternate" hreflang="de-AT" href="/at"><link rel="alternate" hreflang="x-default" href="/"><ul><li>a<li>b</ul>'

  it('are URLs by their type and language, resolved', () => {
    expect(fieldFrom('{ link: canonical }', head)).toBe('http://shop.example.test/dir/p?x=1')
    expect(fieldFrom('{ link: alternate, hreflang: de-at }', head)).toBe('http://shop.example.test/at')
    expect(fieldFrom('{ link: alternate, type: list, items: url }', head)).toEqual([
      'http://shop.example.test/at',
      'http://shop.example.test/',
    ])
    expect(fieldFrom('{ link: next }', head)).toBeNull()
    const all = '{ link: alternate, type: list, fields: { lang: "@hreflang", url: { select: "@href", type: url } } }'
    expect(fieldFrom(all, head)).toEqual([
      { lang: 'de-AT', url: 'http://shop.example.test/at' },
      { lang: 'x-default', url: 'http://shop.example.test/' },
    ])
  })

  it('are those of the page for each of its records', () => {
    expect(fieldFrom('{ select: li, type: list, fields: { t: "::text", c: { link: canonical } } }', head)).toEqual([
      { t: 'a', c: 'http://shop.example.test/dir/p?x=1' },
      { t: 'b', c: 'http://shop.example.test/dir/p?x=1' },
    ])
  })
})

describe('the article of a page', () => {
  const text = 'The lamp is a fine lamp, made by people who know how lamps are made, and it burns for a long time. '
  const page = `<html lang=en><head><title>Lamps - Shop</title><meta property=og:site_name content=Shop></head><body><nav><a href=/>Home</a></nav>
    <article><h1>Lamps</h1><p class=byline>By Ada</p><p>${text.repeat(4)}</p><p>${text.repeat(3)}<b>bold</b> and <a href="/x">x</a></p><ul><li>one</li></ul></article><footer>Imprint</footer></body>`

  it('is its text, its HTML or Markdown, and what is known of it', () => {
    expect(fieldFrom('{ article: text }', page)).toMatch(/^(?!.*Imprint).*fine lamp.*bold and x/)
    expect(fieldFrom('{ article: content, type: html }', page)).toContain('<b>bold</b>')
    expect(fieldFrom('{ article: content, type: markdown }', page)).toMatch(/\*\*bold\*\* and \[x\]\(\/x\)[\s\S]*- +one/)
    expect(fieldFrom('{ article: site }', page)).toBe('Shop')
    expect(fieldFrom('{ article: language }', page)).toBe('en')
    expect(fieldFrom('{ article: published, type: timestamp }', page)).toBeNull()
  })

  it('is that of a fragment as well', () => {
    const fragment = `<article>${`<p>${text}</p>`.repeat(6)}</article>`
    expect(dataFrom('name: t\nversion: 1\nparse: fragment\nfields: { a: { article: text } }', fragment)).toMatchObject([
      { a: expect.stringContaining('fine lamp') as string },
    ])
  })

  it('keeps its words apart as the text of an element does', () => {
    const words = `<article>${`<p>${text}</p><ul><li>one</li><li>two</li></ul><p>x<br>y</p>`.repeat(4)}</article>`
    expect(fieldFrom('{ article: text }', words)).toMatch(/long time\. one two x y The lamp/)
  })

  it('is none where there is no such text', () => {
    expect(fieldFrom('{ article: text }', '')).toBeNull()
  })

  it('leaves the page as it was for the other fields', () => {
    const definition = `name: t\nversion: 1\nfields: { a: { article: title }, n: 'nav a', f: footer }`
    expect(dataFrom(definition, page)).toMatchObject([{ n: 'Home', f: 'Imprint' }])
  })
})

describe('Markdown', () => {
  it('is made of the HTML inside an element', () => {
    const html = '<main><h2>T</h2><p>a <em>b</em></p><script>x()</script><pre><code class="language-js">1</code></pre></main>'
    expect(fieldFrom('{ select: main, type: markdown }', html)).toBe('## T\n\na *b*\n\n```js\n1\n```')
  })
})
