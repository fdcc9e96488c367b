/**
 * A process that uses the embedded broker until it is killed: `broker-owner <data folder>`. Prints the broker's address once it has it.
 */
import { acquireBroker } from '../../src/embedded/embedded-broker.ts'
import { brokerOptions, RecordingObserver } from './embedded.ts'

const dataDir = process.argv[2]
if (dataDir === undefined) throw new Error('usage: broker-owner DATA_DIR')
const broker = await acquireBroker(brokerOptions(dataDir, new RecordingObserver(), 'another command'))
process.stdout.write(`${broker.brokers[0]} ${broker.clusterId}\n`)
setInterval(() => undefined, 60_000)
