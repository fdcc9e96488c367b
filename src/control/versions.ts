import type { LoadedExtractor } from '../extract/load-extractors.ts'
import type { ControlLog } from '../kafka/control-log.ts'
import { MillraceError } from '../kernel/errors.ts'
import { commandPayload, subject } from '../message/command.ts'
import type { WorkerHeartbeat } from '../state/state-store.ts'
import { announce } from './announce.ts'
import { announcedVersions, refuseIncompatible } from './announced-versions.ts'
import { liveWorkers, switchedWorkers } from './live-workers.ts'
import { planRange } from './replay.ts'
import { passGate } from './replay-preview.ts'
import type { Runtime } from './runtime.ts'

/**
 * One version per name: of several that are loaded the one that was promoted last; before the first promotion the lowest, so that a new
 * version beside the old one waits. A name with one file runs that file. Pure. Shape: in the order given.
 */
export function activeVersions(loaded: readonly LoadedExtractor[], promoted: ReadonlyMap<string, number>): readonly LoadedExtractor[] {
  const active = new Map<string, LoadedExtractor>()
  for (const extractor of loaded) {
    const { name, version } = extractor
    const other = active.get(name)
    const wanted = promoted.get(name)
    if (other === undefined || version === wanted || (other.version !== wanted && version < other.version)) active.set(name, extractor)
  }
  return loaded.filter((extractor) => active.get(extractor.name) === extractor)
}

/** What `control` holds: name to version. What is no version there is passed over. */
export function promotedVersions(control: Pick<ControlLog, 'withPrefix'>): Map<string, number> {
  const prefix = subject.promoted('')
  return new Map(
    control.withPrefix(prefix).flatMap((command) => {
      const payload = command.kind === 'set' ? (commandPayload(command) as { version?: unknown } | null) : null
      return typeof payload?.version === 'number' ? [[command.subject.slice(prefix.length), payload.version] as const] : []
    }),
  )
}

export async function activeExtractors(runtime: Runtime, loaded: readonly LoadedExtractor[]): Promise<readonly LoadedExtractor[]> {
  const control = await runtime.control()
  await control.readToEnd()
  return activeVersions(loaded, promotedVersions(control))
}

/** Resolves when another set of the loaded versions is to run. To be ended. */
export function promotionOf(
  control: ControlLog,
  loaded: readonly LoadedExtractor[],
  active: readonly LoadedExtractor[],
): { readonly changed: Promise<void>; readonly end: () => void } {
  let end = (): void => undefined
  const changed = new Promise<void>((resolve) => {
    const look = (): void => {
      const now = activeVersions(loaded, promotedVersions(control))
      if (now.some((extractor) => !active.includes(extractor))) resolve()
    }
    end = control.subscribe(({ command }) => {
      if (command.subject.startsWith(subject.promoted(''))) look()
    })
    // What came between the reading and the listening.
    look()
  })
  return { changed, end }
}

export interface PromoteRequest {
  /** All versions of the configuration. */
  readonly loaded: readonly LoadedExtractor[]
  readonly name: string
  readonly version: number
  /** Why the gate is passed over. */
  readonly force: string | undefined
  /** Told once where workers take long to change over: for which of them it waits. */
  readonly onWaiting?: (text: string) => void
  readonly signal: AbortSignal
}

export interface PromoteReport {
  readonly extractor: string
  readonly version: number
  readonly previous: number | null
  /** Live workers that run the version now, and those that do not (they lack its file, and are to be restarted with it). */
  readonly running: readonly WorkerHeartbeat[]
  readonly others: readonly WorkerHeartbeat[]
}

/**
 * Makes a version the one whose records are written; going back is the same command with the version before. Errors: USAGE for a version
 * without a file, EXTRACTOR_INCOMPATIBLE, EXTRACTOR_HELD by the gate; nothing was changed then.
 */
export async function promote(runtime: Runtime, request: PromoteRequest): Promise<PromoteReport> {
  const { loaded, name, version, force, signal, onWaiting } = request
  const extractor = loaded.find((each) => each.name === name && each.version === version)
  if (extractor === undefined) {
    const versions = loaded.filter((each) => each.name === name).map((each) => each.version)
    const found = versions.length === 0 ? `no file of ${name}` : `version ${versions.join(', ')} of it`
    throw new MillraceError('USAGE', `no extractor file defines ${name} version ${version}; the configuration has ${found}`)
  }
  const control = await runtime.control()
  await refuseIncompatible(runtime, extractor, announcedVersions(control, name))
  const before = (await activeExtractors(runtime, loaded)).find((each) => each.name === name)
  const previous = before === undefined || before.version === version ? undefined : before
  if (force === undefined && previous !== undefined) {
    const plan = await planRange(runtime, runtime.groups.extract(), { start: { kind: 'earliest' }, filter: {} }, false)
    await passGate(runtime, { extractor, against: previous, plan, filter: {}, signal }, undefined)
  }
  const payload = { version, previous: previous?.version ?? null, ...(force === undefined ? {} : { forced: force }) }
  // Counted before they hear of it: one that is between two versions has no heartbeat, and is still to be waited for.
  const expected = await workersOf(runtime, name)
  await announce(runtime, { kind: 'set', subject: subject.promoted(name), payload })
  const workers = await switchedWorkers({
    name,
    version,
    expected,
    workers: () => workersOf(runtime, name),
    ...(onWaiting === undefined ? {} : { onWaiting }),
    clock: runtime.clock,
    signal,
  })
  return {
    extractor: name,
    version,
    previous: previous?.version ?? null,
    running: workers.filter(({ extractors }) => extractors[name] === version),
    others: workers.filter(({ extractors }) => extractors[name] !== version),
  }
}

async function workersOf(runtime: Runtime, name: string): Promise<readonly WorkerHeartbeat[]> {
  return (await liveWorkers(runtime)).filter(({ extractors }) => extractors[name] !== undefined)
}
