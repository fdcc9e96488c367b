import { readFile } from 'node:fs/promises'
import { decodeMetadata, encodeMetadata, freshMetadata, NO_TOTALS } from '../extract/offset-metadata.ts'
import type { OffsetToCommit } from '../kafka/group-admin.ts'
import { readOne } from '../kafka/log-reader.ts'
import { transactionalId } from '../kafka/transactional.ts'
import { partitionId } from '../kernel/brand.ts'
import { MillraceError } from '../kernel/errors.ts'
import { commandPayload, subject } from '../message/command.ts'
import { parseReplayRequest, type ReplayFilter, type ReplayRequest } from '../message/replay-request.ts'
import { notBefore, type PartitionFacts, parseOffsetsFile, planReplay, type ReplayPlan, type ReplayStart } from '../replay/plan.ts'
import { announce } from './announce.ts'
import { evictDeadMembers } from './dead-members.ts'
import { type Runtime, requireTopics } from './runtime.ts'

/** Where a replay begins, as typed. */
export type StartRequest =
  | { readonly kind: 'earliest' }
  /** Epoch ms. */
  | { readonly kind: 'time'; readonly at: number }
  | { readonly kind: 'offset'; readonly offset: bigint }
  | { readonly kind: 'shift'; readonly by: bigint }
  | { readonly kind: 'file'; readonly path: string }

export interface ReplayScope {
  readonly start: StartRequest
  /** Epoch ms of the message; pages from then on are not replayed. */
  readonly until?: number
  readonly partitions?: readonly number[]
  readonly filter: ReplayFilter
}

/** The range that a replay covers. Changes nothing. Errors: REPLAY_REFUSED, KAFKA_TOPIC_MISSING, USAGE. */
export async function planRange(runtime: Runtime, groupId: string, scope: ReplayScope, untilCommitted: boolean): Promise<ReplayPlan> {
  const { admin, topics } = runtime
  await requireTopics(runtime, [topics.html])
  const lags = await admin.lag(groupId, [topics.html])
  const facts: PartitionFacts[] = await Promise.all(
    lags.map(async ({ partition, low, end, committed }) => {
      const isCut = scope.start.kind === 'time' && low > 0n && low < end
      const oldest = isCut ? await readOne(admin.session, { topic: topics.html, partition }, low) : undefined
      return { partition, low, end, committed, oldestAt: oldest?.timestamp }
    }),
  )
  const { fetchedFrom, fetchedUntil } = scope.filter
  // The time of a page's message is the time of its fetch. A page may lie behind one that was fetched a little later, never before the
  // first that is as late as `fetchedFrom`.
  const until = scope.until ?? (fetchedUntil === undefined ? undefined : fetchedUntil + OUT_OF_ORDER_MS)
  const bound = until === undefined ? undefined : await admin.offsetsForTime(topics.html, until)
  const plan = planReplay(
    { topic: topics.html, start: await startOf(runtime, scope.start), until: bound, partitions: scope.partitions, untilCommitted },
    facts,
  )
  return fetchedFrom === undefined ? plan : notBefore(plan, await admin.offsetsForTime(topics.html, fetchedFrom))
}

/** How much later than its neighbours a page may lie on the log, by the time of its fetch. */
const OUT_OF_ORDER_MS = 3_600_000

async function startOf(runtime: Runtime, start: StartRequest): Promise<ReplayStart> {
  const { html } = runtime.topics
  switch (start.kind) {
    case 'earliest':
    case 'offset':
    case 'shift':
      return start
    case 'time':
      return {
        kind: 'offsets',
        offsets: await runtime.admin.offsetsForTime(html, start.at),
        what: new Date(start.at).toISOString(),
        at: start.at,
      }
    case 'file': {
      const text = await readFile(start.path, 'utf8').catch((cause: unknown) => {
        throw new MillraceError('USAGE', `--from-file: can not read ${start.path}`, { cause })
      })
      return { kind: 'offsets', offsets: parseOffsetsFile(text, start.path, html), what: start.path }
    }
  }
}

/**
 * Rewinds a stopped group in place: asks on `control`, fences every partition, then sets the offsets with the state of the replay in
 * their metadata. The group does the work when it starts again. Errors: REPLAY_REFUSED when the group has members or another replay
 * of it is open; nothing was changed then.
 */
export async function rewindGroup(runtime: Runtime, request: ReplayRequest, plan: ReplayPlan): Promise<void> {
  const { admin, topics } = runtime
  const { groupId, replayId } = request
  await evictDeadMembers(runtime)
  await refuseUnlessStopped(runtime, groupId)
  await refuseWhileOpen(runtime, groupId)
  if (plan.pages === 0n) throw new MillraceError('REPLAY_REFUSED', 'there is no page in that range which the group has read')
  await announce(runtime, { kind: 'request', subject: subject.replay(replayId), payload: request })
  // Whoever still holds an open transaction is shut out, and what is committed is then what stands.
  await admin.fenceTransactions(plan.partitions.map(({ partition }) => transactionalId(groupId, topics.html, partition)))
  const committed = await admin.committedOffsets(groupId, [topics.html])
  const offsets: OffsetToCommit[] = []
  for (const { partition, from, until } of plan.partitions) {
    const stored = committed.get(partitionId(topics.html, partition))
    const resumeAt = stored?.offset
    if (resumeAt === undefined || until <= from) continue
    const metadata = decodeMetadata(stored?.metadata ?? '') ?? freshMetadata(resumeAt)
    const replay = { replayId, phase: 'replaying', until: until < resumeAt ? until : resumeAt, resumeAt, totals: NO_TOTALS } as const
    offsets.push({ topic: topics.html, partition, offset: from, metadata: encodeMetadata({ ...metadata, replay }) })
  }
  await admin.commitDirect(groupId, offsets)
}

async function refuseUnlessStopped(runtime: Runtime, groupId: string): Promise<void> {
  const { state, members } = await runtime.admin.describeGroup(groupId)
  if (members.length === 0) return
  const hosts = members.map(({ clientId, host }) => `${clientId} on ${host}`).join(', ')
  throw new MillraceError(
    'REPLAY_REFUSED',
    `group ${groupId} is ${state} with ${members.length} members (${hosts}): stop them for a replay in place, or use --shadow, which runs beside them`,
  )
}

/** One open replay per group: two would each jump to where the other began. */
async function refuseWhileOpen(runtime: Runtime, groupId: string): Promise<void> {
  const control = await runtime.control()
  await control.readToEnd()
  for (const command of control.withPrefix('replay:')) {
    const payload = command.kind === 'request' ? (commandPayload(command) as { groupId?: unknown; replayId?: unknown } | null) : null
    if (payload?.groupId !== groupId || typeof payload.replayId !== 'string') continue
    if (await isDone(runtime, groupId, payload.replayId)) {
      await announce(runtime, { kind: 'close', subject: subject.replay(payload.replayId) })
      continue
    }
    throw new MillraceError(
      'REPLAY_REFUSED',
      `replay ${payload.replayId} of group ${groupId} is still open: let it end (start the group), or use --shadow`,
    )
  }
}

/**
 * Extractors of a group against its open replay: with another version than it asks for, the group would wait for ever. Errors:
 * REPLAY_REFUSED saying which file to run.
 */
export async function refuseOtherVersion(
  runtime: Runtime,
  groupId: string,
  extractors: readonly { readonly name: string; readonly version: number }[],
): Promise<void> {
  const control = await runtime.control()
  await control.readToEnd()
  for (const command of control.withPrefix('replay:')) {
    if (command.kind !== 'request') continue
    const request = parseReplayRequest(commandPayload(command))
    if (request.groupId !== groupId) continue
    const here = extractors.find(({ name }) => name === request.extractor)
    if (here?.version === request.extractorVersion || (await isDone(runtime, groupId, request.replayId))) continue
    const found = here === undefined ? `no extractor ${request.extractor}` : `version ${here.version} of it`
    throw new MillraceError(
      'REPLAY_REFUSED',
      `replay ${request.replayId} of group ${groupId} is open and wants ${request.extractor} version ${request.extractorVersion}; here is ${found}: run with that extractor, and the group replays and goes on`,
    )
  }
}

/** Closes a replay when all partitions have worked their part; whichever owner ends last does it. */
export async function closeReplay(runtime: Runtime, groupId: string, replayId: string): Promise<void> {
  if (await isDone(runtime, groupId, replayId)) await announce(runtime, { kind: 'close', subject: subject.replay(replayId) })
}

/** True when no partition of the group is in that replay any more. */
export async function isDone(runtime: Runtime, groupId: string, replayId: string): Promise<boolean> {
  const committed = await runtime.admin.committedOffsets(groupId, [runtime.topics.html])
  return [...committed.values()].every(({ metadata }) => {
    const replay = decodeMetadata(metadata)?.replay
    return replay?.replayId !== replayId || replay.phase === 'done'
  })
}
