import { createHash } from 'node:crypto'
import type { Runtime } from '../../src/control/runtime/runtime.ts'
import { pageMessage } from '../../src/fetch/page-message.ts'
import { Millrace } from '../../src/index.ts'
import type { Page } from '../../src/message/generated/types.ts'
import type { Deployment } from './deployment.ts'
import { eventually } from './eventually.ts'
import { testPage } from './extraction.ts'
import { brokers } from './services.ts'

/** Pages of a shop as fetch would have stored them: the material of replay tests, without a crawl. */
export interface ShopPage {
  readonly index: number
  /** Epoch ms. */
  readonly fetchedAt?: number
  readonly change?: Partial<Page>
  readonly html?: string
}

/** Every fourth book has no stock, every fifth a price that is struck out before the one that counts. */
export function bookHtml(index: number): string {
  const price = index % 5 === 0 ? `<p class="price"><s>${index}.99</s> <b>${index}.50</b></p>` : `<p class="price"><b>${index}.00</b></p>`
  const stock = index % 4 === 0 ? '' : `<p class="stock">${index} left</p>`
  return `<html><body><h1>Book ${index}</h1><p class="sku">B${index}</p>${price}${stock}${'<p>filler</p>'.repeat(20)}</body></html>`
}

export const BOOK_1 = `name: book
version: 1
key: sku
fields:
  sku: { select: .sku, required: true }
  title: h1
  price: { select: .price, match: '(\\d+\\.\\d+)', type: decimal, scale: 2, required: true }
`

/** The price of a reduced book is right, and the stock is there. */
export const BOOK_2 = `name: book
version: 2
key: sku
fields:
  sku: { select: .sku, required: true }
  title: h1
  price: { select: .price b, type: decimal, scale: 2, required: true }
  stock: { select: .stock, match: '(\\d+)', type: int }
`

/** Broken: there is no such price on any page. */
export const BOOK_BAD = BOOK_2.replace('version: 2', 'version: 3').replace('.price b', '.cost')

export const urlOf = (index: number): string => `http://${index % 2 === 0 ? 'even' : 'odd'}.shop-books.com/b/${index}`

/** Writes pages to html, as fetch does. */
export async function storePages(runtime: Runtime, pages: readonly ShopPage[]): Promise<void> {
  const producer = await runtime.producer()
  const layout = await runtime.layout()
  await runtime.codec.prepare(runtime.topics.html, 'Page')
  const messages = pages.map(({ index, fetchedAt = Date.now(), change = {}, html }) => {
    const taskId = createHash('sha256').update(`task ${index} ${fetchedAt}`).digest('hex').slice(0, 32)
    const page = testPage(html ?? bookHtml(index), urlOf(index), { taskId, fetchId: `${taskId.slice(0, 28)}0001`, fetchedAt, ...change })
    return pageMessage(page, { codec: runtime.codec, layout: () => layout(), topics: runtime.topics })
  })
  await producer.send(messages)
}

export const range = (count: number, from = 0): ShopPage[] => Array.from({ length: count }, (_, index) => ({ index: from + index }))

/** Has the first version of the book extractor work what html holds; nobody is at work afterwards. */
export async function extractStored(deployment: Deployment): Promise<void> {
  const millrace = new Millrace({
    brokers: brokers(),
    data: deployment.dataDir,
    extractors: [deployment.file('book.yaml', BOOK_1)],
    'topics.prefix': deployment.prefix,
  })
  await millrace.run()
  await millrace.stop()
}

/** Resolves when the group has committed everything that html holds. */
export function caughtUp(deployment: Deployment, group?: string, timeoutMs = 60_000): Promise<unknown> {
  return deployment.read((runtime) =>
    eventually(async () => (await runtime.admin.lag(runtime.groups.extract(group), [runtime.topics.html])).every(({ lag }) => lag === 0n), {
      what: 'the extract group to catch up',
      timeoutMs,
      everyMs: 200,
    }),
  )
}

/** End offsets of every topic of a deployment: what a command that writes nothing leaves alone. */
export async function ends(runtime: Runtime): Promise<Record<string, string[]>> {
  const topics = (await runtime.admin.listTopics()).filter((topic) => topic.startsWith(runtime.config['topics.prefix'])).sort()
  const found: Record<string, string[]> = {}
  for (const topic of topics) found[topic] = [...(await runtime.admin.endOffsets(topic, 'read_uncommitted')).values()].map(String)
  return found
}
