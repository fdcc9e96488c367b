import type { LoadedExtractor } from '../extract/load-extractors.ts'
import { MillraceError } from '../kernel/errors.ts'
import { commandPayload, subject } from '../message/command.ts'
import { recordsTopicOf } from '../message/topics.ts'
import type { WorkerHeartbeat } from '../state/state-store.ts'
import { promotedVersions } from './extractors/active-versions.ts'
import { announcedVersion, announcedVersions, refuseIncompatible } from './extractors/announced-versions.ts'
import { extractGroupsOf } from './groups/extract-groups.ts'
import { liveWorkers, switchedWorkers } from './groups/live-workers.ts'
import { promotedLater, promotedUnder, refuseDuringReplay, replayBefore } from './replay/replay-versions.ts'
import { announce } from './runtime/announce.ts'
import type { Runtime } from './runtime/runtime.ts'
import { planRange } from './trials/plan-range.ts'
import { passGate } from './trials/replay-preview.ts'

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
  /** Where its records go. */
  readonly topic: string
  /** Where those of the version before went, if elsewhere: they stay there. */
  readonly movedFrom: string | null
  /** Live workers that run the version now, and those that do not (they lack its file, and are to be restarted with it). */
  readonly running: readonly WorkerHeartbeat[]
  readonly others: readonly WorkerHeartbeat[]
  /** What it gives less of on a sample of the stored pages, though nobody requires it: one sentence each. */
  readonly notes: readonly string[]
}

/**
 * Makes a version the one whose records are written; going back is the same command with the version before. Errors: USAGE for a version
 * without a file, EXTRACTOR_INCOMPATIBLE, EXTRACTOR_HELD by the gate, REPLAY_REFUSED while a replay in place works with another version;
 * nothing was changed then.
 */
export async function promote(runtime: Runtime, request: PromoteRequest): Promise<PromoteReport> {
  const { loaded, name, version, force, signal, onWaiting } = request
  const extractor = loaded.find((each) => each.name === name && each.version === version)
  if (extractor === undefined) {
    const versions = loaded.filter((each) => each.name === name).map((each) => each.version)
    const given = versions.length === 0 ? 'there is no file of it' : `there is the file of version ${versions.join(', ')}`
    throw new MillraceError(
      'USAGE',
      `no extractor file defines ${name} version ${version}: ${given} (files are named by --extractor, or by \`extractors:\` in the configuration)`,
    )
  }
  const control = await runtime.control()
  await refuseIncompatible(runtime, extractor, announcedVersions(control, name))
  await refuseDuringReplay(runtime, name, version)
  await control.readToEnd()
  const promoted = promotedVersions(control).get(name)
  const previous = promoted ?? lowestOther(loaded, name, version)
  let notes: readonly string[] = []
  if (force === undefined && promoted !== version) {
    // Without the file of the version before, what it gave is on the log.
    const against = loaded.find((each) => each.name === name && each.version === previous)
    const plan = await planRange(runtime, runtime.groups.extract(), { start: { kind: 'earliest' }, filter: {} }, false)
    notes = await passGate(runtime, { extractor, against, plan, filter: {}, signal }, undefined)
    // That takes its time, in which one may have begun.
    await refuseDuringReplay(runtime, name, version)
  }
  const former = previous === undefined || previous === version ? null : previous
  const payload = { version, previous: former, ...(force === undefined ? {} : { forced: force }) }
  const topic = recordsTopicOf(extractor, runtime.topics)
  const before = former === null ? undefined : topicOf(runtime, loaded, control, { name, version: former })
  // Counted before they hear of it: one that is between two versions has no heartbeat, and is still to be waited for.
  const expected = await workersOf(runtime, name)
  const { id } = await announce(runtime, { kind: 'set', subject: subject.promoted(name), payload })
  await takeBackBehindReplay(runtime, { id, name, version })
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
    previous: former,
    topic,
    movedFrom: before === undefined || before === topic ? null : before,
    running: workers.filter(({ extractors }) => extractors[name] === version),
    others: workers.filter(({ extractors }) => extractors[name] !== version),
    notes,
  }
}

/** Errors: REPLAY_REFUSED; what was promoted before the replay is so again then, unless somebody has promoted another one meanwhile. */
async function takeBackBehindReplay(
  runtime: Runtime,
  { id, name, version }: { readonly id: string; readonly name: string; readonly version: number },
): Promise<void> {
  const replay = await replayBefore(runtime, name, version)
  if (replay === undefined) return
  const before = await promotedUnder(runtime, replay, id)
  const control = await runtime.control()
  await control.readToEnd()
  if (control.get(subject.promoted(name))?.id === id) {
    const former = before === undefined ? { kind: 'delete' as const } : { kind: 'set' as const, payload: commandPayload(before) }
    await announce(runtime, { ...former, subject: subject.promoted(name) })
  }
  throw promotedLater(replay)
}

/** Of a version with a file, or that was announced; undefined where nobody knows it. */
function topicOf(
  { topics }: Pick<Runtime, 'topics'>,
  loaded: readonly LoadedExtractor[],
  control: Parameters<typeof announcedVersion>[0],
  { name, version }: { readonly name: string; readonly version: number },
): string | undefined {
  const found = loaded.find((each) => each.name === name && each.version === version) ?? announcedVersion(control, name, version)
  return found === undefined ? undefined : recordsTopicOf(found, topics)
}

/** What works before the first promotion, beside the version itself. */
function lowestOther(loaded: readonly LoadedExtractor[], name: string, version: number): number | undefined {
  const versions = loaded.filter((each) => each.name === name).map((each) => each.version)
  const lowest = Math.min(...versions)
  return lowest === version ? undefined : lowest
}

async function workersOf(runtime: Runtime, name: string): Promise<readonly WorkerHeartbeat[]> {
  // Not a candidate beside them, which stays what it is.
  const groups = extractGroupsOf(runtime)
  return (await liveWorkers(runtime)).filter(({ groupId, extractors }) => groups.includes(groupId) && extractors[name] !== undefined)
}
