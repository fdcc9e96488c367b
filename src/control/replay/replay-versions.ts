import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import type { ControlLog } from '../../kafka/control-log.ts'
import { readMessages } from '../../kafka/log-reader.ts'
import { isMillraceError, MillraceError } from '../../kernel/errors.ts'
import { commandPayload, subject } from '../../message/command.ts'
import type { Command } from '../../message/generated/types.ts'
import type { ReplayRequest } from '../../message/replay-request.ts'
import { promotedVersions } from '../extractors/active-versions.ts'
import { extractGroupsOf } from '../groups/extract-groups.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { openIn, openRequests } from './replay-ledger.ts'
import { isThrough, replayStatus } from './replay-status.ts'

/**
 * A replay in place needs its version to the end, and a promotion puts another one in its place: neither begins while the other stands.
 * Each looks before it writes to `control` and once more behind that, where the one that lies later on the log gives way. What comes
 * through all the same (a command that was killed between the two) ends no worker: those that have the file keep the version of the
 * replay until it has ended.
 */

/** What a group is to run. */
export interface VersionsToRun {
  readonly extractors: readonly LoadedExtractor[]
  /** The replay that keeps another version than the promoted one at work. */
  readonly heldBy?: string
  /** Why the replay can't go on with them, and with which file it could. */
  readonly refusal?: string
}

/** The replay in place that owners of a group obey, as far as `control` was read; it may be through, and nobody has closed it yet. */
export function replayInForce(control: Pick<ControlLog, 'withPrefix'>, groupId: string): ReplayRequest | undefined {
  return openIn(control, groupId).find(({ cancelled }) => cancelled !== true)
}

/** The same as everybody knows it now. Shape: undefined where it is through. */
export async function unfinishedReplay(runtime: Runtime, groupId: string): Promise<ReplayRequest | undefined> {
  for (const request of await openRequests(runtime, groupId))
    if (request.cancelled !== true && !isThrough(await replayStatus(runtime, request.replayId))) return request
  return undefined
}

/** Pure. `working`: those of the group that are promoted, or the lowest; `loaded`: all versions of them that there are files of. */
export function versionsUnder(
  replay: ReplayRequest | undefined,
  working: readonly LoadedExtractor[],
  loaded: readonly LoadedExtractor[],
): VersionsToRun {
  if (replay === undefined) return { extractors: working }
  const { replayId, groupId, extractor: name, extractorVersion: version } = replay
  const here = working.find((each) => each.name === name)
  if (here?.version === version) return { extractors: working }
  const wanted = loaded.find((each) => each.name === name && each.version === version)
  if (here !== undefined && wanted !== undefined)
    return { extractors: working.map((each) => (each === here ? wanted : each)), heldBy: replayId }
  const found = here === undefined ? `no extractor ${name}` : `version ${here.version} of it`
  const refusal = `replay ${replayId} of group ${groupId} is open and wants ${name} version ${version}; here is ${found}: run with that extractor, and the group replays and goes on; or end it with \`millrace replay cancel ${replayId}\``
  return { extractors: working, refusal }
}

/** All extract groups are looked at. Errors: REPLAY_REFUSED naming the replay that works with another version. */
export async function refuseDuringReplay(runtime: Runtime, name: string, version: number): Promise<void> {
  const replay = await replayOfOther(runtime, name, version)
  if (replay !== undefined) throw promotedLater(replay)
}

/**
 * After a promotion was announced: the replay that stands before it on the log and works with another version. Those behind it are taken
 * back by their own commands.
 */
export async function replayBefore(runtime: Runtime, name: string, version: number): Promise<ReplayRequest | undefined> {
  const replay = await replayOfOther(runtime, name, version)
  const control = await runtime.control()
  return replay !== undefined && isBefore(control, subject.replay(replay.replayId), subject.promoted(name)) ? replay : undefined
}

/**
 * The promotion that stands without those that are refused behind a replay, as far as `control` goes before the promotion `id`. Another one
 * may be refused in the same moment, so what was promoted last need not be it. Shape: undefined where there is none.
 */
export async function promotedUnder(runtime: Runtime, replay: ReplayRequest, id: string): Promise<Command | undefined> {
  const control = await runtime.control()
  const begun = control.offsetOf(subject.replay(replay.replayId)) ?? 0n
  const about = subject.promoted(replay.extractor)
  let standing: Command | undefined
  const all = { from: new Map([[runtime.topics.control, 'earliest' as const]]), isolation: 'read_uncommitted' as const }
  for await (const messages of readMessages(runtime, all)) {
    for (const { key, value, offset } of messages) {
      if (key?.toString('utf8') !== about) continue
      const command = await readableCommand(runtime, value)
      // What we can't read promotes nothing here, either.
      if (command === undefined) continue
      if (command.id === id) return standing
      const { version } = (commandPayload(command) ?? {}) as { readonly version?: unknown }
      if (offset < begun || version === replay.extractorVersion) standing = command.kind === 'set' ? command : undefined
    }
  }
  return standing
}

async function readableCommand({ codec }: Runtime, value: Buffer | null): Promise<Command | undefined> {
  try {
    await codec.ensureSchemas([value])
    return codec.decode('Command', value)
  } catch (error) {
    if (!isMillraceError(error)) throw error
    return undefined
  }
}

async function replayOfOther(runtime: Runtime, name: string, version: number): Promise<ReplayRequest | undefined> {
  for (const groupId of extractGroupsOf(runtime)) {
    const replay = await unfinishedReplay(runtime, groupId)
    if (replay?.extractor === name && replay.extractorVersion !== version) return replay
  }
  return undefined
}

export function promotedLater({ replayId, groupId, extractor, extractorVersion }: ReplayRequest): MillraceError {
  return new MillraceError(
    'REPLAY_REFUSED',
    `replay ${replayId} of group ${groupId} works with ${extractor} version ${extractorVersion}: let it end (\`millrace replay status\`), or end it with \`millrace replay cancel ${replayId}\`; then promote`,
  )
}

/**
 * Why a version may not be replayed in place: another one is promoted, and workers change over to it whatever they run now. Shape:
 * undefined where it may. `replayId`: of a request that is on the log; a promotion behind it is taken back by its own command.
 */
export async function promotedOther(
  runtime: Runtime,
  { extractor, extractorVersion }: Pick<ReplayRequest, 'extractor' | 'extractorVersion'>,
  replayId?: string,
): Promise<MillraceError | undefined> {
  const control = await runtime.control()
  await control.readToEnd()
  const promoted = promotedVersions(control).get(extractor)
  if (promoted === undefined || promoted === extractorVersion) return undefined
  if (replayId !== undefined && isBefore(control, subject.replay(replayId), subject.promoted(extractor))) return undefined
  return new MillraceError(
    'REPLAY_REFUSED',
    `version ${promoted} of ${extractor} is promoted, and a replay in place would need version ${extractorVersion}: promote that first (\`millrace promote ${extractor}:${extractorVersion}\`), or use --shadow`,
  )
}

function isBefore(control: Pick<ControlLog, 'offsetOf'>, one: string, other: string): boolean {
  return (control.offsetOf(one) ?? 0n) < (control.offsetOf(other) ?? 0n)
}
