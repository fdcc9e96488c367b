import { readOne } from '../../kafka/log-reader.ts'
import { TaskPublisher } from '../../kafka/task-publisher.ts'
import { MillraceError } from '../../kernel/errors.ts'
import { memo } from '../../kernel/memo.ts'
import { createMessageCodec } from '../../message/codec.ts'
import { stoppedCrawls } from '../crawls/stopped-crawls.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { pageReader, type RequeueParts } from './requeue-message.ts'
import { writtenBeside } from './written-beside.ts'

/** Whose partitions are looked up once. */
const TOPICS = 100

/** What `requeueOf` goes by. Without `execute` it writes nothing, and announces nothing. */
export async function requeueParts(runtime: Runtime, { execute }: { readonly execute: boolean }): Promise<RequeueParts> {
  const { codec, topics, clusterId, maxBatchBytes, clock, admin } = runtime
  const control = await runtime.control()
  await control.readToEnd()
  const partitionsOf = memo(
    async (topic): Promise<readonly number[]> => ((await admin.listTopics()).includes(topic) ? admin.partitions(topic) : []),
    TOPICS,
  )
  const readAt: RequeueParts['readAt'] = async ({ topic, partition, offset }) => {
    if (!(await partitionsOf(topic)).includes(partition)) return undefined
    // What lies behind an open transaction lies there as well.
    return readOne(admin.session, { topic, partition }, offset, 'read_uncommitted')
  }
  return {
    codec,
    publisher: execute ? await runtime.publisher() : await tryingPublisher(runtime),
    layout: await runtime.layout(),
    topics,
    clusterId,
    maxBatchBytes,
    now: clock.now(),
    writtenBeside: (info) => writtenBeside(control, info),
    isCrawlStopped: stoppedCrawls(control),
    readAt,
    pageAt: pageReader(() => admin.earliestOffsets(topics.html), readAt),
  }
}

/** What would be written is built and sized, and no reader has to know its schema: nothing is announced or registered for it. */
async function tryingPublisher(runtime: Runtime): Promise<TaskPublisher> {
  const { topics, schemaStore, clock } = runtime
  const send = (): Promise<never> => Promise.reject(new MillraceError('INTERNAL', 'nothing is to be written'))
  return new TaskPublisher({
    topics,
    codec: createMessageCodec({ schemaStore }),
    producer: { send },
    layout: await runtime.layout(),
    clock,
  })
}
