import type { MessagePlace } from '../kernel/brand.ts'

/** A message as read: bytes are copies of ours, so that keeping one does not keep a whole fetch response alive. */
export interface KafkaMessage extends MessagePlace {
  /** Epoch ms, as the producer or the broker set it. */
  readonly timestamp: number
  readonly key: Buffer | null
  readonly value: Buffer | null
  /** Of a repeated header the last value is kept. */
  readonly headers: MessageHeaders
}

export type MessageHeaders = Readonly<Record<string, Buffer>>

/** A message to write. The partition is always explicit: the client's own choice would follow its metadata, not our layout. */
export interface OutgoingMessage {
  readonly topic: string
  readonly partition: number
  readonly key: string | Buffer | null
  readonly value: Buffer | null
  readonly headers?: Readonly<Record<string, string | Buffer>>
  /** Epoch ms; the time of sending where not given. */
  readonly timestamp?: number
}

/** Text of a header; undefined where it is absent. */
export function headerText(headers: MessageHeaders, name: string): string | undefined {
  return headers[name]?.toString('utf8')
}
