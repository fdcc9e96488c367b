import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import type { ReplayFilter } from '../../message/replay-request.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { PageTrial } from './page-trial.ts'
import type { ReplayPlan } from './replay-plan.ts'
import { isRead, PageSample } from './stored-pages.ts'

/** What a replay of a range would cost, as far as a sample tells. */
export interface RangeEstimate {
  /** Pages that were looked at. */
  readonly looked: number
  /** The sample is the whole range: counts and bytes are exact. */
  readonly isExact: boolean
  /** Stored bytes of the range. */
  readonly bytes: number
  /** Pages that the extractor would read. */
  readonly matched: number
  /** Of pages that the extractor reads; null where none was found. */
  readonly pagesPerSecond: number | null
  readonly rateFrom: 'last replay' | 'sample' | 'cap' | null
  /** By one extract process; null where no rate is known. */
  readonly seconds: number | null
}

/** Pages that are extracted to measure. */
const SAMPLE_PAGES = 60
/** The first pages find a cold process: they are run and not counted. */
const WARM_PAGES = 10

/**
 * Bytes, pages to the point and time of a range, from a sample of it. The rate is that of the last replay of this extractor, where
 * there was one, else what the sample takes; nothing is written.
 */
export async function estimateRange(
  runtime: Runtime,
  plan: ReplayPlan,
  request: {
    readonly extractor: LoadedExtractor
    readonly filter: ReplayFilter
    readonly rate?: number | undefined
    readonly signal?: AbortSignal
  },
): Promise<RangeEstimate> {
  const { extractor, filter, signal } = request
  const sample = new PageSample(runtime, plan, filter, { wanted: SAMPLE_PAGES, isWanted: (stored) => isRead(extractor, stored) })
  const measured = { pages: 0, ms: 0 }
  const trial = await PageTrial.start(runtime, extractor)
  try {
    let run = 0
    for await (const stored of sample.pages(signal)) {
      if (stored.page === undefined || !isRead(extractor, stored)) continue
      const startedMono = runtime.clock.mono()
      await trial.run(stored)
      run += 1
      const ms = runtime.clock.mono() - startedMono
      // Of a handful of pages all are counted: a cold figure is better than none.
      if (run === WARM_PAGES + 1) Object.assign(measured, { pages: 0, ms: 0 })
      measured.pages += 1
      measured.ms += ms
    }
  } finally {
    await trial.close()
  }
  const pages = Number(plan.offsets)
  const share = sample.looked === 0 ? 0 : sample.found / sample.looked
  const matched = sample.looked >= pages ? sample.found : Math.round(pages * share)
  const last = await lastRate(runtime, extractor.name)
  const sampled = measured.ms === 0 ? undefined : (measured.pages * 1000 * runtime.config['extract.threads']) / measured.ms
  const own = last ?? sampled
  const isCapped = request.rate !== undefined && (own === undefined || request.rate < own)
  const pagesPerSecond = (isCapped ? request.rate : own) ?? null
  return {
    looked: sample.looked,
    isExact: sample.looked >= pages,
    bytes: sample.looked === 0 ? 0 : Math.round((sample.bytes / sample.looked) * pages),
    matched,
    pagesPerSecond: pagesPerSecond === null ? null : Math.round(pagesPerSecond * 10) / 10,
    rateFrom: pagesPerSecond === null ? null : isCapped ? 'cap' : last === undefined ? 'sample' : 'last replay',
    seconds: pagesPerSecond === null ? null : Math.ceil((matched / pagesPerSecond) * 10) / 10,
  }
}

/** Replays shorter than this measure their start rather than their pace. */
const TELLING_PAGES = 200

/** Not `replay-rate:`, by which paces were kept that nobody had watched. */
const PACE = 'replay-pace:'

/** Keeps the pace of a replay that has ended, for the next plan. */
export async function rememberRate(runtime: Runtime, extractor: string, pages: number, elapsedMs: number): Promise<void> {
  if (pages < TELLING_PAGES || elapsedMs <= 0) return
  const state = await runtime.state()
  await state.writeValue(`${PACE}${extractor}`, String((pages * 1000) / elapsedMs))
}

async function lastRate(runtime: Runtime, extractor: string): Promise<number | undefined> {
  const state = await runtime.state()
  const rate = Number(await state.readValue(`${PACE}${extractor}`))
  return Number.isFinite(rate) && rate > 0 ? rate : undefined
}
