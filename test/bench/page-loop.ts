import { deployed } from './deployed-modules.ts'
import type { BenchExtractor } from './replay-extractors.ts'
import { type LoadPage, loadPages, storedPage } from './replay-load.ts'

/** A loop over pages in memory, in a process of its own. */
export interface PageLoopOptions {
  readonly extractor: BenchExtractor
  /** Worked before the clock starts. */
  readonly warmPages: number
  readonly pages: number
  /** By the native parser, where it reads the page alike; by the default one where not given. */
  readonly native?: boolean
}

export interface PageLoopReport {
  readonly pages: number
  readonly cpuSeconds: number
  readonly seconds: number
  /** The highest once it was warm. */
  readonly residentMiB: number
  /** What it makes of each page of the corpus: Avro without framing, as `referenceRecord` of its data. */
  readonly records: readonly Buffer[]
}

/** Text of a page in, the data of its record out. */
export type PageWork = (text: string, url: string) => unknown

/**
 * Works the pages in turn, a turn of the event loop for each, and tells the parent what it took. Every record is encoded, as the stage has
 * to.
 */
export async function runPageLoop(options: PageLoopOptions, work: PageWork): Promise<void> {
  const pages = loadPages()
  const [{ decodeText }, encode] = await Promise.all([deployed.charset(), recordEncoder(options.extractor, pages)])
  const one = (index: number): Buffer => {
    const { body } = pages[index % pages.length] as LoadPage
    return encode(work(decodeText(body, 'UTF-8'), 'http://site0.example/'), index)
  }
  for (let index = 0; index < options.warmPages; index += 1) {
    one(index)
    await turn()
  }
  let residentBytes = 0
  const began = performance.now()
  const cpu = process.cpuUsage()
  for (let index = 0; index < options.pages; index += 1) {
    one(index)
    await turn()
    if (index % 50 === 0) residentBytes = Math.max(residentBytes, process.memoryUsage.rss())
  }
  const { user, system } = process.cpuUsage(cpu)
  const report: PageLoopReport = {
    pages: options.pages,
    cpuSeconds: (user + system) / 1e6,
    seconds: (performance.now() - began) / 1_000,
    residentMiB: residentBytes / 1_048_576,
    records: pages.map((_, index) => one(index)),
  }
  process.send?.(report, () => process.disconnect())
}

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** Bytes of the record of a page, in the envelope that all loops give it. */
async function recordEncoder(extractor: BenchExtractor, pages: readonly LoadPage[]): Promise<(data: unknown, index: number) => Buffer> {
  const [{ readDefinition }, { deriveSchema }, { recordOf }] = await Promise.all([
    deployed.readDefinition(),
    deployed.deriveSchema(),
    deployed.envelope(),
  ])
  const { definition } = readDefinition(extractor.text)
  if (definition === undefined) throw new Error(`the extractor ${extractor.name} can't be read`)
  const schema = deriveSchema(definition)
  const stored = pages.map((_, index) => storedPage(pages, index))
  return (data, index) => {
    const page = stored[index % stored.length]
    if (page === undefined) throw new Error('there are no pages')
    const source = { topic: 'html', partition: 0, offset: 0n }
    const context = { page, source, extractor: extractor.name, version: 1, extractedAt: 0, replayId: null }
    return schema.encode(recordOf(context, { entityKey: page.canonicalUrl, data }, 0))
  }
}
