import { afterEach, describe, expect, it, vi } from 'vitest'
import type { BlobReader } from '../../../src/blobs/blob-store.ts'
import type { ExtractionProcess } from '../../../src/extract/extraction-process.ts'
import { ExtractorHost } from '../../../src/extract/extractor-host.ts'
import type { ExtractorSource } from '../../../src/extract/extractor-source.ts'
import { loadDefinition } from '../../../src/extract/load-extractors.ts'
import { createPageRunner, type PageJob, type RunResult } from '../../../src/extract/page-runner.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { bodyRefOf } from '../../../src/message/body-ref.ts'
import { outcomeOf, testJob, testPage } from '../../support/extraction.ts'

/** Processes that are none: pages are worked here. */
vi.mock('../../../src/extract/extraction-process.ts', () => ({
  ExtractionProcess: {
    start: async (sources: readonly ExtractorSource[]): Promise<Partial<ExtractionProcess>> => {
      const runner = createPageRunner(sources)
      return {
        isEnded: false,
        hasWorked: true,
        kill: () => undefined,
        run: async (job: PageJob, onResult: (result: RunResult) => void) => {
          runner.run(job, onResult)
          return undefined
        },
      }
    },
  },
}))

const title = loadDefinition('title.yaml', 'name: title\nversion: 1\nfields: { title: h1 }')
const html = '<h1>T</h1>'

let host: ExtractorHost | undefined
afterEach(() => host?.stop({ mode: 'abort', timeoutMs: 0 }))

describe('a page whose body lies in a blob store that is slow', () => {
  it('holds up no page that has its body with it, and is worked when the body is there', async () => {
    let give: (body: Buffer) => void = () => undefined
    const given = new Promise<Buffer>((resolve) => {
      give = resolve
    })
    const blobs = { get: () => given } as unknown as BlobReader
    host = new ExtractorHost({
      extractors: [title],
      threads: 1,
      pageTimeoutMs: 1_000,
      pageMemoryBytes: 1e8,
      blobs,
      clock: systemClock,
      observer: silentObserver,
    })
    await host.start()
    const stored = testPage(html)
    const away = { ...stored, body: Buffer.alloc(0), bodyRef: bodyRefOf(stored) }
    const waiting = [host.extract(testJob(away, ['title'])), host.extract(testJob(away, ['title']))]
    expect((await host.extract(testJob(testPage(html), ['title']))).map(outcomeOf)).toEqual(['title: 1 records'])
    const drained = host.stop({ mode: 'drain', timeoutMs: 10_000 })
    give(stored.body)
    for (const each of waiting) expect((await each).map(outcomeOf)).toEqual(['title: 1 records'])
    await drained
  })
})
