import { z } from 'zod'
import type { ControlLog } from '../../kafka/control-log.ts'
import type { LayoutSource, PartitionLayout } from '../../kafka/layout.ts'
import { MillraceError } from '../../kernel/errors.ts'
import { commandPayload, subject } from '../../message/command.ts'

/** What `layout` on the control topic holds: how many partitions each topic has, as all members must see it. */
export interface LayoutPayload {
  readonly version: number
  readonly partitions: Readonly<Record<string, number>>
  /** The numbers of partitions that topics had before, oldest first, of those that have had others: what was written then lies by them. */
  readonly former: Readonly<Record<string, readonly number[]>>
}

const count = z.number().int().positive()
const schema = z.object({
  version: count,
  partitions: z.record(z.string(), count),
  former: z.record(z.string(), z.array(count)).default({}),
})

/** The layout that comes after another one, which undefined is none. Pure. Shape: undefined where nothing changes. */
export function nextLayout(present: LayoutPayload | undefined, wanted: Readonly<Record<string, number>>): LayoutPayload | undefined {
  const partitions = { ...present?.partitions, ...wanted }
  const changed = Object.entries(partitions).filter(([topic, count]) => countIn(present, topic) !== count)
  if (present !== undefined && changed.length === 0) return undefined
  const former: Record<string, readonly number[]> = { ...present?.former }
  for (const [topic] of changed) {
    const before = countIn(present, topic)
    if (before !== undefined) former[topic] = [...(own(present?.former, topic) ?? []).filter((each) => each !== before), before]
  }
  return { version: (present?.version ?? 0) + 1, partitions, former }
}

/** How many partitions the layout gives the topic; undefined where it does not know it. */
export function countIn(layout: LayoutPayload | undefined, topic: string): number | undefined {
  return own(layout?.partitions, topic)
}

/** A topic may be named as what every object has. */
function own<T>(record: Readonly<Record<string, T>> | undefined, topic: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, topic) ? record[topic] : undefined
}

/** The layout that is on the control topic. Errors: MESSAGE_INVALID. Undefined where there is none. */
export function readLayout(control: Pick<ControlLog, 'get'>): LayoutPayload | undefined {
  const command = control.get(subject.layout)
  if (command === undefined) return undefined
  const parsed = schema.safeParse(commandPayload(command))
  if (parsed.success) return parsed.data
  throw new MillraceError('MESSAGE_INVALID', `the layout on the control topic is not valid: ${parsed.error.issues[0]?.message ?? ''}`)
}

/**
 * The layout in force, asked again for each message. Errors: KAFKA_TOPIC_MISSING before `topics apply`; CONTROL_UNREADABLE where it was
 * never one that can be read here.
 */
export function layoutSource(control: Pick<ControlLog, 'get' | 'requireReadable'>): LayoutSource {
  let seen: { readonly command: unknown; readonly layout: PartitionLayout } | undefined
  return () => {
    const command = control.get(subject.layout)
    if (seen !== undefined && seen.command === command) return seen.layout
    const payload = readLayout(control)
    if (payload === undefined) control.requireReadable(subject.layout)
    if (payload === undefined) throw new MillraceError('KAFKA_TOPIC_MISSING', 'the control topic holds no layout of the topics')
    const partitionsOf = (topic: string): number => {
      const count = countIn(payload, topic)
      if (count === undefined)
        throw new MillraceError('KAFKA_TOPIC_MISSING', `the layout does not know topic ${topic}`, { context: { topic } })
      return count
    }
    const layout: PartitionLayout = {
      version: payload.version,
      knows: (topic) => countIn(payload, topic) !== undefined,
      partitionsOf,
      countsOf: (topic) => [...(own(payload.former, topic) ?? []), partitionsOf(topic)],
    }
    seen = { command, layout }
    return layout
  }
}
