import type { LoadedExtractor } from '../extract/load-extractors.ts'
import { BaseService, type StopMode } from '../kernel/lifecycle.ts'
import type { WorkingVersions } from './active-versions.ts'
import { announceExtractors, createExtract } from './extraction.ts'
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

/**
 * The extract stage of one group in the versions that work: a promotion drains what runs as a signal would, and it begins again with
 * the other version, beside stages that go on. Says which versions it runs by its heartbeat.
 */
export class ExtractStage extends BaseService {
  readonly #runtime: Runtime
  readonly #options: ExtractStageOptions
  #parts = new StageGroup()
  #running: readonly LoadedExtractor[] = []
  #endHeartbeat = async (): Promise<void> => undefined
  #changing: Promise<void> = Promise.resolve()

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
    // One that begins can't be drained: at the deadline it gives up.
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
    // Nothing begins for a stage that was stopped meanwhile.
    if (!this.#isEnding) await this.#begin(this.aborted.signal)
  }

  get #isEnding(): boolean {
    return this.aborted.signal.aborted || this.state === 'draining'
  }

  async #begin(signal: AbortSignal): Promise<void> {
    const { versions, own, groupId, onOutput } = this.#options
    this.#running = own(versions.current)
    await announceExtractors(this.#runtime, this.#running)
    await refuseOtherVersion(this.#runtime, groupId, this.#running)
    const output = onOutput === undefined ? {} : { onOutput }
    const { host, worker } = await createExtract(this.#runtime, this.#running, { groupId, ...output })
    const parts = new StageGroup()
    this.#parts = parts
    await parts.start('extraction', host, signal)
    await parts.start('extract', worker, signal)
    parts.failed.catch((error: unknown) => this.fail(error))
    const extractors = Object.fromEntries(this.#running.map(({ name, version }) => [name, version]))
    this.#endHeartbeat = await startHeartbeat(this.#runtime, { stage: 'extract', groupId, extractors })
  }

  /** Its heartbeat ends last: until then it may still write. */
  async #end(mode: StopMode, signal = this.aborted.signal): Promise<void> {
    const endHeartbeat = this.#endHeartbeat
    this.#endHeartbeat = async () => undefined
    await stopStages(this.#parts, { mode, timeoutMs: this.#options.drainTimeoutMs }, signal)
    await endHeartbeat()
  }
}
