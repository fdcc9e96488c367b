import { z } from 'zod'
import type { ControlLog } from '../kafka/control-log.ts'
import type { LayoutSource, PartitionLayout } from '../kafka/layout.ts'
import { MillraceError } from '../kernel/errors.ts'
import { commandPayload, subject } from '../message/command.ts'

/** What `layout` on the control topic holds: how many partitions each topic has, as all members must see it. */
export interface LayoutPayload {
  readonly version: number
  readonly partitions: Readonly<Record<string, number>>
}

const schema = z.object({ version: z.number().int().positive(), partitions: z.record(z.string(), z.number().int().positive()) })

/** The layout that is on the control topic. Errors: MESSAGE_INVALID. Undefined where there is none. */
export function readLayout(control: Pick<ControlLog, 'get'>): LayoutPayload | undefined {
  const command = control.get(subject.layout)
  if (command === undefined) return undefined
  const parsed = schema.safeParse(commandPayload(command))
  if (parsed.success) return parsed.data
  throw new MillraceError('MESSAGE_INVALID', `the layout on the control topic is not valid: ${parsed.error.issues[0]?.message ?? ''}`)
}

/** The layout in force, asked again for each message. Errors: KAFKA_TOPIC_MISSING before `topics apply`. */
export function layoutSource(control: Pick<ControlLog, 'get'>): LayoutSource {
  let seen: { readonly command: unknown; readonly layout: PartitionLayout } | undefined
  return () => {
    const command = control.get(subject.layout)
    if (seen !== undefined && seen.command === command) return seen.layout
    const payload = readLayout(control)
    if (payload === undefined) throw new MillraceError('KAFKA_TOPIC_MISSING', 'the control topic holds no layout of the topics')
    const layout: PartitionLayout = {
      version: payload.version,
      partitionsOf: (topic) => {
        const count = Object.hasOwn(payload.partitions, topic) ? payload.partitions[topic] : undefined
        if (count === undefined)
          throw new MillraceError('KAFKA_TOPIC_MISSING', `the layout does not know topic ${topic}`, { context: { topic } })
        return count
      },
    }
    seen = { command, layout }
    return layout
  }
}
