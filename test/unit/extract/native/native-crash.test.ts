import { afterEach, describe, expect, it, vi } from 'vitest'
import type { ExtractionProcess, ProcessEnd, ProcessOptions } from '../../../../src/extract/extraction-process.ts'
import { ExtractorHost } from '../../../../src/extract/extractor-host.ts'
import type { ExtractorSource } from '../../../../src/extract/extractor-source.ts'
import { loadDefinition } from '../../../../src/extract/load-extractors.ts'
import { createPageRunner, type PageJob, type RunResult } from '../../../../src/extract/page-runner.ts'
import { systemClock } from '../../../../src/kernel/clock.ts'
import { silentObserver } from '../../../../src/kernel/observe.ts'
import { outcomeOf, testJob, testPage } from '../../../support/extraction.ts'

/** How a process ends in which the native parser reads a page with this word; every try is noted. */
const native = vi.hoisted(() => ({ end: undefined as ProcessEnd | undefined, tries: [] as string[] }))

/** Processes whose native parser ends them, which the real one is not known to do; all else is as it is. */
vi.mock('../../../../src/extract/extraction-process.ts', () => ({
  ExtractionProcess: {
    start: async (sources: readonly ExtractorSource[], options: ProcessOptions): Promise<Partial<ExtractionProcess>> => {
      const runner = createPageRunner(sources)
      let isEnded = false
      return {
        get isEnded() {
          return isEnded
        },
        kill: () => undefined,
        isNative: options.native === true,
        run: async (job: PageJob, onResult: (result: RunResult) => void) => {
          const isNative = options.native === true && job.withoutNative !== true
          native.tries.push(`${job.extractors.join('+')}${isNative ? '' : ' without'}`)
          // An extractor that ends its process by whichever parser.
          const isHopeless = job.extractors.includes('hopeless')
          if (native.end !== undefined && (isNative || isHopeless)) {
            isEnded = true
            return native.end
          }
          runner.run(job, onResult)
          return undefined
        },
      }
    },
  },
}))

const extractor = (name: string, field = 'h1') => loadDefinition(`${name}.yaml`, `name: ${name}\nversion: 1\nfields: { title: '${field}' }`)

let host: ExtractorHost | undefined
afterEach(() => host?.stop({ mode: 'abort', timeoutMs: 0 }))

async function outcomes(end: ProcessEnd | undefined, extractors: ReturnType<typeof extractor>[]): Promise<string[]> {
  native.end = end
  native.tries = []
  host = new ExtractorHost({
    extractors,
    threads: 1,
    pageTimeoutMs: 1_000,
    pageMemoryBytes: 1e8,
    clock: systemClock,
    observer: silentObserver,
  })
  await host.start()
  const names = extractors.map(({ name }) => name)
  return (await host.extract(testJob(testPage('<h1>T</h1>'), names))).map(outcomeOf)
}

describe('a page on which the native parser ends its process', () => {
  it.each([{ reason: 'crash', detail: 'it ended with SIGSEGV' }, { reason: 'memory' }] as const)(
    'is read by the default parser ($reason), each extractor alone',
    async (end) => {
      expect(await outcomes(end, [extractor('a'), extractor('b')])).toEqual(['a: 1 records', 'b: 1 records'])
      expect(native.tries).toEqual(['a+b', 'a', 'a without', 'b', 'b without'])
    },
  )

  it('is a dead letter where that ends its process too, after one try of each', async () => {
    const crash = { reason: 'crash', detail: 'it ended with SIGSEGV' } as const
    expect(await outcomes(crash, [extractor('hopeless')])).toEqual(['hopeless: EXTRACT_CRASHED'])
    expect(native.tries).toEqual(['hopeless', 'hopeless without'])
  })

  it('is a dead letter at once where the native parser had nothing to do with it', async () => {
    expect(await outcomes({ reason: 'memory' }, [extractor('hopeless', 'h1 ~ p')])).toEqual(['hopeless: EXTRACT_MEMORY'])
    expect(native.tries).toEqual(['hopeless'])
  })

  it('is not read twice where it took too long: an extractor that never ends would take twice the time on every page', async () => {
    expect(await outcomes({ reason: 'timeout' }, [extractor('hopeless')])).toEqual(['hopeless: EXTRACT_TIMEOUT'])
    expect(native.tries).toEqual(['hopeless'])
  })
})
