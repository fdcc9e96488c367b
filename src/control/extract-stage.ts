import type { LoadedExtractor } from '../extract/load-extractors.ts'
import { AWAY_BUDGET_MS } from '../kafka/consumer-failure.ts'
import { backoffMs } from '../kernel/backoff.ts'
import { errorText, isAway, MillraceError } from '../kernel/errors.ts'
import { BaseService, type StopMode } from '../kernel/lifecycle.ts'
import type { WorkingVersions } from './active-versions.ts'
import { announceExtractors, createExtract, type ExtractParts } from './extraction.ts'
import { startHeartbeat } from './heartbeat.ts'
import { refuseOtherVersion } from './replay-in-place.ts'
import type { Runtime } from './runtime.ts'
import { StageGroup, stopStages } from './stage-group.ts'

export interface ExtractStageOptions {
  readonly versions: WorkingVersions
  /** Those of this group. */
  readonly own: (working: readonly LoadedExtractor[]) => readonly LoadedExtractor[]
  readonly groupId: string
  /** How long what runs may take to finish when another version is promoted. */
  readonly drainTimeoutMs: number
  readonly onOutput?: (text: string) => void
}

const RETRY = { firstMs: 200, maxMs: 5_000 } as const

/**
 * The extract stage of one group in the versions that work: a promotion drains what runs as a signal would, and it begins again with
 * the other version, beside stages that go on. Says which versions it runs by its heartbeat.
 *
 * A broker or a store that is away when the other version is to begin is waited for, as long as a consumer waits for its broker.
 */
export class ExtractStage extends BaseService {
  readonly #runtime: Runtime
  readonly #options: ExtractStageOptions
  #parts = new StageGroup()
  #running: readonly LoadedExtractor[] = []
  #endHeartbeat = async (): Promise<void> => undefined
  #changing: Promise<void> = Promise.resolve()
  /** Aborted when nothing may begin any more; what runs may still drain then. */
  readonly #noMore = new AbortController()

  constructor(runtime: Runtime, options: ExtractStageOptions) {
    super()
    this.#runtime = runtime
    this.#options = options
  }

  protected async onStart(signal: AbortSignal): Promise<void> {
    this.releases.add('extraction', async () => {
      // What begins ends by the signal, and would be left behind.
      await this.#changing
      await this.#end('abort')
    })
    await this.#begin(signal)
    this.releases.add(
      'following promotions',
      this.#options.versions.onChange(() => this.#follow()),
    )
    // What was promoted while it began.
    this.#follow()
  }

  protected async onDrain(signal: AbortSignal): Promise<void> {
    // One that begins has taken nothing that could be drained.
    this.#noMore.abort(new MillraceError('ABORTED', 'the service is draining'))
    // What drains for another version has until the deadline, as has what runs.
    signal.addEventListener('abort', () => this.aborted.abort(signal.reason), { once: true })
    await this.#changing
    await this.#end('drain', signal)
  }

  #follow(): void {
    this.#changing = this.#changing.then(() => this.#change()).catch((error: unknown) => this.fail(error))
  }

  async #change(): Promise<void> {
    const { versions, own } = this.#options
    const next = own(versions.current)
    if (this.#isEnding || next.every((extractor) => this.#running.includes(extractor))) return
    await this.#end('drain')
    await this.#beginAgain(AbortSignal.any([this.aborted.signal, this.#noMore.signal]))
  }

  /** Nothing begins for a stage that was stopped meanwhile. */
  async #beginAgain(signal: AbortSignal): Promise<void> {
    const { clock, observer } = this.#runtime
    const sinceMono = clock.mono()
    for (let tries = 1; !signal.aborted; tries += 1) {
      try {
        return await this.#begin(signal)
      } catch (error) {
        await this.#end('abort')
        if (signal.aborted) return
        if (!isAway(error) || clock.mono() - sinceMono > AWAY_BUDGET_MS) throw error
        if (tries === 1) observer.emit('ChangeOverRetried', { group: this.#options.groupId, reason: error.code, error: errorText(error) })
        await clock.sleep(backoffMs(RETRY, tries, Math.random()), signal).catch(() => undefined)
      }
    }
  }

  get #isEnding(): boolean {
    return this.aborted.signal.aborted || this.#noMore.signal.aborted
  }

  /** Whatever it has started is the stage's before it can fail, and ended with it. */
  async #begin(signal: AbortSignal): Promise<void> {
    const { host, worker } = await unlessAborted(signal, () => this.#prepare())
    const parts = new StageGroup()
    this.#parts = parts
    await parts.start('extraction', host, signal)
    await parts.start('extract', worker, signal)
    parts.failed.catch((error: unknown) => this.fail(error))
    const extractors = Object.fromEntries(this.#running.map(({ name, version }) => [name, version]))
    this.#endHeartbeat = await startHeartbeat(this.#runtime, { stage: 'extract', groupId: this.#options.groupId, extractors })
  }

  async #prepare(): Promise<ExtractParts> {
    const { versions, own, groupId, onOutput } = this.#options
    this.#running = own(versions.current)
    await announceExtractors(this.#runtime, this.#running)
    await refuseOtherVersion(this.#runtime, groupId, this.#running)
    return createExtract(this.#runtime, this.#running, { groupId, ...(onOutput === undefined ? {} : { onOutput }) })
  }

  /** Its heartbeat ends last: until then it may still write. */
  async #end(mode: StopMode, signal = this.aborted.signal): Promise<void> {
    const endHeartbeat = this.#endHeartbeat
    this.#endHeartbeat = async () => undefined
    await stopStages(this.#parts, { mode, timeoutMs: this.#options.drainTimeoutMs }, signal)
    await endHeartbeat()
  }
}

/** What asks the broker or a store can hang as long as these are away; whoever stops does not wait for it. */
async function unlessAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted()
  let onAbort = (): void => undefined
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
  })
  try {
    return await Promise.race([work(), aborted])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}
