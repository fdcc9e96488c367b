import { pageMessage } from '../../src/fetch/page-message.ts'
import { packPageBody } from '../../src/message/page-body.ts'
import { hasCorpus } from '../support/corpus.ts'
import { type BenchBroker, FetchDeployment } from './fetch-deployment.ts'
import { type Goal, print, printTable } from './figures.ts'
import { type LoadPage, loadPages, storedPage } from './replay-load.ts'

/** What a busy fetch stage sends together. */
const PAGES_PER_SEND = 16

/** G14: bytes of the html topic on disk against the bytes of the pages. Envelopes, headers, keys and batches are in it. */
export async function replayStored(broker: BenchBroker, { pages }: { pages: number }): Promise<Goal[]> {
  if (!hasCorpus) {
    print('\nG14 skipped: there is no corpus of real pages')
    return []
  }
  const load = loadPages()
  const cases = [
    {
      name: 'sent by gzip, stored as received',
      store: (page: LoadPage) => packPageBody({ body: page.packed, encoding: 'gzip', decoded: page.body }),
    },
    {
      name: 'sent plain, packed by us',
      store: (page: LoadPage) => packPageBody({ body: page.body, encoding: 'identity', decoded: page.body }),
    },
  ] as const
  const rows: (readonly [string, number, number, number])[] = []
  for (const { name, store } of cases) {
    const deployment = await FetchDeployment.open(broker)
    try {
      const { runtime } = deployment
      const [producer, layout] = await Promise.all([runtime.producer(), runtime.layout()])
      const parts = { codec: runtime.codec, layout, topics: runtime.topics }
      await runtime.codec.prepare(runtime.topics.html, 'Page')
      const bodies = await Promise.all(load.map(store))
      let raw = 0
      const cpu = process.cpuUsage()
      await Promise.all(load.map(store))
      const packMs = process.cpuUsage(cpu)
      for (let from = 0; from < pages; from += PAGES_PER_SEND) {
        const indexes = Array.from({ length: Math.min(PAGES_PER_SEND, pages - from) }, (_, offset) => from + offset)
        await producer.send(indexes.map((index) => pageMessage({ ...storedPage(load, index), ...bodies[index % bodies.length] }, parts)))
        raw += indexes.reduce((total, index) => total + (bodies[index % bodies.length]?.bodyLength ?? 0), 0)
      }
      rows.push([name, raw / pages, broker.storedBytes(runtime.topics.html) / raw, (packMs.user + packMs.system) / 1_000 / load.length])
    } finally {
      await deployment.close()
    }
  }
  print(`\n${pages} pages, ${PAGES_PER_SEND} a send`)
  printTable(['', 'bytes of a page', 'on disk / bytes', 'CPU ms to pack and hash one'], rows)
  return rows.map(([name, , ratio]) => ({ name: `G14 bytes on disk / bytes of pages, ${name}`, value: ratio, target: { atMost: 0.23 } }))
}
