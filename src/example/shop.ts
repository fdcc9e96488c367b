/**
 * The pages of the example shop: three departments on hosts of their own, 240 articles, written by rule so that every run sees the
 * same shop. Pure; the server beside it puts them on loopback.
 */
export interface Article {
  readonly sku: string
  readonly department: Department
  readonly title: string
  readonly brand: string
  /** Cents. */
  readonly price: number
  /** Cents; articles on sale show it first, struck through. */
  readonly oldPrice: number | undefined
  readonly stock: number
  readonly rating: number
  readonly tags: readonly string[]
}

export const DEPARTMENTS = ['tea', 'books', 'prints'] as const
export type Department = (typeof DEPARTMENTS)[number]

export const SHOP_HOST = 'www.millshop.example'
const ARTICLES_PER_LIST = 12
const COUNTS: Readonly<Record<Department, number>> = { tea: 110, books: 90, prints: 40 }

const WORDS: Readonly<Record<Department, { kinds: readonly string[]; adjectives: readonly string[]; brands: readonly string[] }>> = {
  tea: {
    kinds: ['Assam', 'Oolong', 'Sencha', 'Rooibos', 'Darjeeling', 'Lapsang'],
    adjectives: ['Smoked', 'First Flush', 'Golden', 'Early', 'Mountain'],
    brands: ['Weir & Sons', 'Kettle House', 'Leat'],
  },
  books: {
    kinds: ['Rivers', 'Mills', 'Water Wheels', 'Logs', 'Offsets', 'Gears'],
    adjectives: ['A History of', 'Notes on', 'The Quiet', 'Practical', 'On Building'],
    brands: ['Sluice Press', 'Penstock', 'Tailwater Books'],
  },
  prints: {
    kinds: ['Mill at Dusk', 'Ford', 'Old Weir', 'Granary'],
    adjectives: ['Linocut:', 'Etching:', 'Woodcut:'],
    brands: ['Studio Race', 'Millstone'],
  },
}

/** All articles, in the order of their departments. */
export function shopArticles(): Article[] {
  return DEPARTMENTS.flatMap((department) => Array.from({ length: COUNTS[department] }, (_, index) => article(department, index)))
}

function article(department: Department, index: number): Article {
  const words = WORDS[department]
  const pick = (list: readonly string[], salt: number): string => list[(index * salt + salt) % list.length] ?? ''
  const price = 395 + ((index * 737) % 18_000)
  return {
    sku: `${department.slice(0, 1).toUpperCase()}${String(index + 1).padStart(4, '0')}`,
    department,
    title: `${pick(words.adjectives, 3)} ${pick(words.kinds, 5)} No. ${index + 1}`,
    brand: pick(words.brands, 7),
    price,
    oldPrice: index % 4 === 0 ? price + 200 + ((index * 31) % 900) : undefined,
    stock: (index * 13) % 40,
    rating: 2 + ((index * 7) % 31) / 10,
    tags: [department, index % 2 === 0 ? 'gift' : 'everyday', ...(index % 5 === 0 ? ['new'] : [])],
  }
}

export interface ShopPage {
  readonly status: number
  readonly contentType: string
  readonly body: string
}

/** One page by host and path; `port` stands in the links, since the shop listens on any free port. */
export function shopPage(host: string, path: string, port: number): ShopPage {
  if (path === '/robots.txt') return { status: 200, contentType: 'text/plain', body: 'User-agent: *\nDisallow: /basket\n' }
  const department = DEPARTMENTS.find((name) => host === hostOf(name))
  if (department === undefined) {
    return host === SHOP_HOST && path === '/' ? html(homePage(port)) : notFound()
  }
  const articles = shopArticles().filter((item) => item.department === department)
  const list = /^\/(?:list\/(\d+))?$/.exec(path)
  if (list !== null) return html(listPage(department, articles, Number(list[1] ?? 1), port))
  const found = articles.find((item) => path === `/article/${item.sku.toLowerCase()}`)
  return found === undefined ? notFound() : html(articlePage(found, port))
}

function hostOf(department: Department): string {
  return `${department}.millshop.example`
}

function html(body: string): ShopPage {
  return { status: 200, contentType: 'text/html; charset=utf-8', body }
}

function notFound(): ShopPage {
  return { status: 404, contentType: 'text/html; charset=utf-8', body: '<!doctype html><title>Not here</title><h1>Not here</h1>' }
}

function homePage(port: number): string {
  const links = DEPARTMENTS.map((name) => `<li><a href="http://${hostOf(name)}:${port}/">${name}</a></li>`).join('')
  return `<!doctype html><title>Millshop</title><h1>Millshop</h1><ul>${links}</ul><p><a href="/basket">Basket</a></p>`
}

function listPage(department: Department, articles: readonly Article[], number: number, port: number): string {
  const shown = articles.slice((number - 1) * ARTICLES_PER_LIST, number * ARTICLES_PER_LIST)
  const next = number * ARTICLES_PER_LIST < articles.length ? `<a rel="next" href="/list/${number + 1}">more</a>` : ''
  const items = shown
    .map((item) => `<li><a href="/article/${item.sku.toLowerCase()}">${item.title}</a> ${euros(item.price)}</li>`)
    .join('\n')
  return `<!doctype html><title>${department}, page ${number}</title><h1>${department}</h1><ol>${items}</ol>${next}<a href="http://${SHOP_HOST}:${port}/">home</a>`
}

function articlePage(item: Article, port: number): string {
  const old = item.oldPrice === undefined ? '' : `<s class="price was">${euros(item.oldPrice)}</s> `
  const structured = JSON.stringify({
    '@context': 'https://schema.org',
    '@type': 'Product',
    sku: item.sku,
    brand: { '@type': 'Brand', name: item.brand },
    aggregateRating: { '@type': 'AggregateRating', ratingValue: item.rating },
  })
  return `<!doctype html>
<html lang="en"><head><title>${item.title} | Millshop</title>
<link rel="canonical" href="http://${hostOf(item.department)}:${port}/article/${item.sku.toLowerCase()}">
<script type="application/ld+json">${structured}</script></head>
<body><nav><a href="http://${SHOP_HOST}:${port}/">Millshop</a> <a href="/">${item.department}</a></nav>
<article data-sku="${item.sku}"><h1>${item.title}</h1>
<p>${old}<span class="price now">${euros(item.price)}</span></p>
<p class="stock">${item.stock === 0 ? 'sold out' : `${item.stock} in stock`}</p>
<ul class="tags">${item.tags.map((tag) => `<li>${tag}</li>`).join('')}</ul></article></body></html>`
}

function euros(cents: number): string {
  return `€ ${Math.floor(cents / 100).toLocaleString('de-DE')},${String(cents % 100).padStart(2, '0')}`
}
