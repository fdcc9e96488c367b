import { type WindowEntry, WindowedConsumer } from '../kafka/windowed-consumer.ts'
import type { RecordEnvelope } from '../message/generated/types.ts'
import { RecordReader } from './record-reader.ts'
import type { Runtime } from './runtime.ts'

export interface ConsumedRecord {
  readonly record: RecordEnvelope & { readonly data: unknown }
  readonly topic: string
  readonly partition: number
  readonly offset: bigint
  /** The record is dealt with: it is not given again. */
  readonly commit: () => void
}

/** Records in a consumer group, committed messages only; ends when the signal aborts, with what was committed stored. */
export async function* consumeRecords(
  runtime: Runtime,
  options: { groupId: string; topic?: string; signal: AbortSignal },
): AsyncGenerator<ConsumedRecord> {
  const { client, clock, observer, topics } = runtime
  await runtime.control()
  const reader = new RecordReader(runtime)
  const waiting: WindowEntry[] = []
  let wake = (): void => undefined
  const consumer = new WindowedConsumer({
    client,
    groupId: options.groupId,
    topics: [options.topic ?? topics.records],
    onEntries: (entries) => {
      waiting.push(...entries)
      wake()
    },
    clock,
    observer,
  })
  const onAbort = (): void => wake()
  options.signal.addEventListener('abort', onAbort, { once: true })
  let failure: unknown
  consumer.closed.catch((error: unknown) => {
    failure = error
    wake()
  })
  await consumer.start({ signal: options.signal })
  try {
    while (!options.signal.aborted) {
      if (failure !== undefined) throw failure
      const entry = waiting.shift()
      if (entry === undefined) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
        continue
      }
      const { message } = entry
      if (!entry.isCurrent()) continue
      if (!(await reader.learn([message], options.signal))) break
      const found = await reader.read(message)
      if (found === undefined) {
        entry.complete()
        continue
      }
      const record = found.value as ConsumedRecord['record']
      yield { record, topic: message.topic, partition: message.partition, offset: message.offset, commit: () => entry.complete() }
    }
  } finally {
    options.signal.removeEventListener('abort', onAbort)
    await consumer.commitNow()
    await consumer.stop({ mode: 'abort', timeoutMs: 0 })
  }
}
