import { processClientId } from '../../src/control/runtime/process-client-id.ts'
import { createKafkaClient } from '../../src/kafka/client.ts'
import { silentObserver } from '../../src/kernel/observe.ts'

/**
 * A process that is a member of a consumer group until it is killed: `node --import tsx group-member-child.ts BROKERS GROUP TOPIC`. Its
 * session is longer than any test waits.
 */
const [brokers = '', groupId = '', topic = ''] = process.argv.slice(2)
const client = createKafkaClient({ brokers: brokers.split(','), clientId: processClientId('child') }, silentObserver)
const consumer = client.kafka.consumer({ groupId, sessionTimeout: 60_000, rebalanceTimeout: 60_000 })
consumer.on(consumer.events.GROUP_JOIN, () => process.send?.('joined'))
await consumer.connect()
await consumer.subscribe({ topic })
await consumer.run({ eachMessage: async () => undefined })
