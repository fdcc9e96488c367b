import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import { AWAY_BUDGET_MS } from '../../kafka/consumer-failure.ts'
import { unlessAborted } from '../../kernel/abort.ts'
import { AwakeTime } from '../../kernel/awake-time.ts'
import { retried } from '../../kernel/backoff.ts'
import { errorText, isAway, MillraceError } from '../../kernel/errors.ts'
import { BaseService, type StopMode } from '../../kernel/lifecycle.ts'
import { ServiceGroup, stopServices } from '../../kernel/service-group.ts'
import { parseSubject } from '../../message/command.ts'
import type { ReplayRequest } from '../../message/replay-request.ts'
import type { WorkingVersions } from '../extractors/active-versions.ts'
import { announceExtractors } from '../extractors/announce-extractors.ts'
import { createExtract, type ExtractParts } from '../extractors/create-extract.ts'
import { extractorsOf } from '../groups/extract-groups.ts'
import { startHeartbeat } from '../groups/heartbeat.ts'
import { measureGroup } from '../groups/stage-gauges.ts'
import { endIfThrough } from '../replay/replay-end.ts'
import { replayInForce, unfinishedReplay, type VersionsToRun, versionsUnder } from '../replay/replay-versions.ts'
import type { Runtime } from '../runtime/runtime.ts'

export interface ExtractStageOptions {
  readonly versions: WorkingVersions
  /** Those of this group. */
  readonly own: (working: readonly LoadedExtractor[]) => readonly LoadedExtractor[]
  readonly groupId: string
  /** Of a version that works beside what is live. */
  readonly isCandidate?: boolean
  /** How long what runs may take to finish when another version is promoted. */
  readonly drainTimeoutMs: number
  readonly onOutput?: ((text: string) => void) | undefined
}

/** Extraction of one group with what tells how far that is behind; the stage tells by itself that it lives. */
export async function startExtract(
  runtime: Runtime,
  stages: ServiceGroup,
  options: ExtractStageOptions,
  signal: AbortSignal,
): Promise<void> {
  await stages.start('extract', new ExtractStage(runtime, options), signal)
  measureGroup(runtime, 'extract', options.groupId)
}

/** The group of `extract.groups` with this name, or the common one. */
export function liveGroup(runtime: Runtime, name: string | undefined): Pick<ExtractStageOptions, 'own' | 'groupId'> {
  return { own: (working) => extractorsOf(runtime, working, name), groupId: runtime.groups.extract(name) }
}

const RETRY = { firstMs: 200, maxMs: 5_000 } as const

/**
 * The extract stage of one group in the versions that work: a promotion drains what runs as a signal would, and it begins again with
 * the other version, beside stages that go on. Says which versions it runs by its heartbeat. A replay in place keeps its version at work
 * until it has ended, where there is a file of it; where there is none a start is refused, and what runs goes on in the promoted versions
 * and pauses the partitions of the replay.
 *
 * A broker or a store that is away when the other version is to begin is waited for, as long as a consumer waits for its broker.
 */
export class ExtractStage extends BaseService {
  readonly #runtime: Runtime
  readonly #options: ExtractStageOptions
  #parts = new ServiceGroup()
  #running: readonly LoadedExtractor[] = []
  #heldBy: string | undefined
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
    await this.#begin(signal, 'refuse')
    this.releases.add(
      'following promotions',
      this.#options.versions.onChange(() => this.#follow()),
    )
    const control = await this.#runtime.control()
    this.releases.add(
      'following replays',
      control.subscribe(({ command }) => {
        if (parseSubject(command.subject)?.kind === 'replay') this.#follow()
      }),
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
    const signal = AbortSignal.any([this.aborted.signal, this.#noMore.signal])
    const replay = await this.#untilBack(signal, () => this.#replay(signal))
    if (signal.aborted) return
    const { extractors, heldBy } = this.#versionsUnder(replay)
    this.#tellHeld(heldBy)
    if (extractors.every((extractor) => this.#running.includes(extractor))) return
    await this.#end('drain')
    await this.#untilBack(signal, () => this.#beginWhole(signal))
  }

  /** Where none is in force nobody has to be asked; one that is may be through, and then holds nothing. */
  async #replay(signal: AbortSignal): Promise<ReplayRequest | undefined> {
    const { groupId } = this.#options
    const control = await this.#runtime.control()
    signal.throwIfAborted()
    if (replayInForce(control, groupId) === undefined) return undefined
    return unlessAborted(signal, () => unfinishedReplay(this.#runtime, groupId))
  }

  async #beginWhole(signal: AbortSignal): Promise<void> {
    try {
      await this.#begin(signal, 'tell')
    } catch (error) {
      await this.#end('abort')
      throw error
    }
  }

  /** Nothing begins for a stage that was stopped meanwhile. Shape: undefined then. */
  async #untilBack<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T | undefined> {
    const { clock, observer, consumerSettings } = this.#runtime
    const { awayBudgetMs = AWAY_BUDGET_MS } = consumerSettings
    const awake = new AwakeTime(clock)
    const again = (error: unknown, tries: number): boolean => {
      if (!isAway(error) || awake.ms() > awayBudgetMs) return false
      if (tries === 1) observer.emit('ChangeOverRetried', { group: this.#options.groupId, reason: error.code, error: errorText(error) })
      return true
    }
    try {
      signal.throwIfAborted()
      return await retried(work, { policy: RETRY, again, clock, signal })
    } catch (error) {
      if (signal.aborted) return undefined
      throw error
    } finally {
      awake.stop()
    }
  }

  /** Whatever it has started is the stage's before it can fail, and ended with it. */
  async #begin(signal: AbortSignal, whereRefused: 'refuse' | 'tell'): Promise<void> {
    const { host, worker } = await unlessAborted(signal, () => this.#prepare(whereRefused))
    const parts = new ServiceGroup()
    this.#parts = parts
    await parts.start('extraction', host, signal)
    await parts.start('extract', worker, signal)
    parts.failed.catch((error: unknown) => this.fail(error))
    const extractors = Object.fromEntries(this.#running.map(({ name, version }) => [name, version]))
    this.#endHeartbeat = await startHeartbeat(this.#runtime, { stage: 'extract', groupId: this.#options.groupId, extractors })
  }

  /** Who starts it is told at once which file is missing; one that ran goes on, for its supervisor would only start it again. */
  async #prepare(whereRefused: 'refuse' | 'tell'): Promise<ExtractParts> {
    const { groupId, isCandidate = false, onOutput } = this.#options
    const { extractors, heldBy, refusal } = this.#versionsUnder(await unfinishedReplay(this.#runtime, groupId))
    this.#running = extractors
    this.#tellHeld(heldBy)
    await announceExtractors(this.#runtime, extractors, isCandidate ? 'beside' : 'live')
    if (refusal !== undefined && whereRefused === 'refuse') throw new MillraceError('REPLAY_REFUSED', refusal)
    if (refusal !== undefined) this.#runtime.observer.emit('ReplayRefused', { group: groupId, error: refusal })
    return createExtract(this.#runtime, this.#running, {
      groupId,
      isCandidate,
      onReplayDone: (replayId) => endIfThrough(this.#runtime, replayId),
      ...(onOutput === undefined ? {} : { onOutput }),
    })
  }

  #tellHeld(replayId: string | undefined): void {
    if (replayId !== undefined && replayId !== this.#heldBy)
      this.#runtime.observer.emit('PromotionHeld', { group: this.#options.groupId, replayId })
    this.#heldBy = replayId
  }

  #versionsUnder(replay: ReplayRequest | undefined): VersionsToRun {
    const { versions, own } = this.#options
    return versionsUnder(replay, own(versions.current), own(versions.loaded))
  }

  /** Its heartbeat ends last: until then it may still write. */
  async #end(mode: StopMode, signal = this.aborted.signal): Promise<void> {
    const endHeartbeat = this.#endHeartbeat
    this.#endHeartbeat = async () => undefined
    await stopServices(this.#parts, { mode, timeoutMs: this.#options.drainTimeoutMs }, signal)
    await endHeartbeat()
  }
}
