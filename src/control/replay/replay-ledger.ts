import { canonical } from '../../comparison/compare.ts'
import type { ControlLog } from '../../kafka/control-log.ts'
import { isMillraceError, MillraceError } from '../../kernel/errors.ts'
import { commandPayload, subject } from '../../message/command.ts'
import type { Command } from '../../message/generated/types.ts'
import { isSameFilter, parseReplayRequest, type ReplayRequest } from '../../message/replay-request.ts'
import { announce } from '../runtime/announce.ts'
import type { Runtime } from '../runtime/runtime.ts'

export function noReplay(replayId: string): MillraceError {
  return new MillraceError('USAGE', `there is no replay ${replayId}; \`millrace replay status\` lists them`)
}

/** Topics that shadows were told to write to, with the name of the last one that was. */
export function shadowTopics(control: Pick<ControlLog, 'withPrefix'>): ReadonlyMap<string, string> {
  const requests = control.withPrefix('replay:').flatMap((command) => requestOf(command) ?? [])
  const open = requests.flatMap(({ replayId, shadow, forgotten }) =>
    shadow === undefined || forgotten === true ? [] : [{ replayId, shadow }],
  )
  return new Map(open.map(({ replayId, shadow }) => [shadow.topic, replayId] as const))
}

/** Shape: undefined for what is no request; of a closed one the request is what its last command repeats. */
export function requestOf(command: Command): ReplayRequest | undefined {
  try {
    return parseReplayRequest(commandPayload(command))
  } catch (error) {
    if (!isMillraceError(error, 'MESSAGE_INVALID')) throw error
    return undefined
  }
}

export interface KnownRequest {
  readonly request: ReplayRequest
  readonly isClosed: boolean
  /** What was said of it last. */
  readonly command: Command
}

/** What `control` holds under an id, however it was begun. Shape: undefined where there is nothing. */
export async function knownRequest(runtime: Runtime, replayId: string): Promise<KnownRequest | undefined> {
  const control = await runtime.control()
  await control.readToEnd()
  const command = control.get(subject.replay(replayId))
  const request = command === undefined ? undefined : requestOf(command)
  if (command === undefined || request === undefined) return undefined
  return { request, isClosed: command.kind === 'close', command }
}

/**
 * Announces a replay. Shape: what `control` then holds, which is the request of another command where that was quicker under this id.
 * Errors: REPLAY_REFUSED where it asked for something else.
 */
export async function beginRequest(runtime: Runtime, request: ReplayRequest): Promise<KnownRequest> {
  const { replayId } = request
  await announce(runtime, { kind: 'request', subject: subject.replay(replayId), payload: request })
  const held = await knownRequest(runtime, replayId)
  if (held === undefined) throw new MillraceError('INTERNAL', `the request of replay ${replayId} is not on the control topic`)
  refuseOtherRequest(held.request, request)
  return held
}

/** An id goes on with what it was first: another extractor or other pages under it would be half of each. Errors: REPLAY_REFUSED. */
export function refuseOtherRequest(known: ReplayRequest, asked: Omit<ReplayRequest, 'ranges' | 'cancelled'>): void {
  const told = ({ groupId, extractor, extractorVersion, filter, shadow }: Omit<ReplayRequest, 'ranges'>): string =>
    `${extractor} version ${extractorVersion} in group ${groupId}, filter ${canonical(filter)}${shadow === undefined ? '' : `, records to ${shadow.topic}`}`
  const isOther = told({ ...known, filter: {} }) !== told({ ...asked, filter: {} })
  if (!isOther && isSameFilter(known.filter, asked.filter)) {
    // It goes on with the range that it has: of another preview it would replay what nobody has looked at.
    if (asked.expected === undefined || asked.expected === known.expected) return
    const preview = known.expected === undefined ? 'without --expect' : `with --expect ${known.expected}`
    throw new MillraceError(
      'REPLAY_REFUSED',
      `--id ${asked.replayId} was begun ${preview}, and keeps its range; leave out --expect ${asked.expected}, or take another --id`,
    )
  }
  throw new MillraceError(
    'REPLAY_REFUSED',
    `--id ${asked.replayId} was begun as ${told(known)}, and this is ${told(asked)}; take another --id`,
  )
}

/** Errors: REPLAY_REFUSED for what was called off or forgotten: what it would go on with is gone. */
export function refuseCancelled({ replayId, cancelled, forgotten }: ReplayRequest): void {
  if (forgotten === true) throw new MillraceError('REPLAY_REFUSED', `replay ${replayId} was forgotten; begin another under a new --id`)
  if (cancelled === true) throw new MillraceError('REPLAY_REFUSED', `replay ${replayId} was called off; begin another under a new --id`)
}

/** Requests of a group that nobody has closed, in the order of the log. */
export async function openRequests(runtime: Runtime, groupId: string): Promise<ReplayRequest[]> {
  const control = await runtime.control()
  await control.readToEnd()
  return openIn(control, groupId)
}

/** As far as `control` was read. */
export function openIn(control: Pick<ControlLog, 'withPrefix'>, groupId: string): ReplayRequest[] {
  return control.withPrefix('replay:').flatMap((command) => {
    const request = command.kind === 'request' ? requestOf(command) : undefined
    return request?.groupId === groupId ? [request] : []
  })
}
