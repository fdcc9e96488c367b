import { readFile } from 'node:fs/promises'
import { readOne } from '../../kafka/log-reader.ts'
import { MillraceError } from '../../kernel/errors.ts'
import type { ReplayFilter } from '../../message/replay-request.ts'
import { type Runtime, requireTopics } from '../runtime/runtime.ts'
import {
  exportOffsets,
  notBefore,
  type PartitionFacts,
  parseOffsetsFile,
  planReplay,
  type ReplayPlan,
  type ReplayStart,
} from './replay-plan.ts'

export type { ReplayPlan }

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
  const { fetchedFrom } = scope.filter
  // The time of a page's message is the time of its fetch, and no page as late as `fetchedFrom` lies before the first that is. Nothing of
  // the kind holds for the end: a page may be written late, or again (requeue), so all that follows is read unless `until` says otherwise.
  const bound = scope.until === undefined ? undefined : await admin.offsetsForTime(topics.html, scope.until)
  const [start, asked, partitions] = [await startOf(runtime, scope.start), askedFor(scope), scope.partitions]
  const plan = planReplay({ topic: topics.html, asked, start, until: bound, partitions, untilCommitted }, facts)
  return fetchedFrom === undefined ? plan : notBefore(plan, await admin.offsetsForTime(topics.html, fetchedFrom), asked)
}

/** The range in words. Pure. */
export function askedFor({ start, until, partitions, filter }: ReplayScope): string {
  const day = (at: number): string => new Date(at).toISOString()
  const { fetchedFrom, fetchedUntil } = filter
  return [
    startText(start, day),
    ...(until === undefined ? [] : [`stored before ${day(until)}`]),
    ...(fetchedFrom === undefined ? [] : [`fetched from ${day(fetchedFrom)} on`]),
    ...(fetchedUntil === undefined ? [] : [`fetched before ${day(fetchedUntil)}`]),
    ...(partitions === undefined ? [] : [`of partition ${partitions.join(', ')}`]),
  ].join(', ')
}

function startText(start: StartRequest, day: (at: number) => string): string {
  switch (start.kind) {
    case 'earliest':
      return 'all stored pages'
    case 'time':
      return `pages stored from ${day(start.at)} on`
    case 'offset':
      return `pages from offset ${start.offset} of each partition on`
    case 'shift':
      return `pages from the committed offset ${start.by < 0n ? '-' : '+'} ${start.by < 0n ? -start.by : start.by} on`
    case 'file':
      return `pages from the offsets of ${start.path} on`
  }
}

/** A plan as lines `topic,partition,offset`. */
export function offsetLines(plan: ReplayPlan): readonly string[] {
  return exportOffsets(plan)
}

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
