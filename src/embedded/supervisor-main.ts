/** Entry of the supervisor's own process: `supervisor-main <data folder>`. Nothing imports it. */
import { systemClock } from '../kernel/clock.ts'
import { brokerFolder } from './broker-folder.ts'
import { superviseBroker } from './supervisor.ts'

const dataDir = process.argv[2]
if (dataDir === undefined) throw new Error('usage: supervisor-main DATA_DIR')
const stop = new AbortController()
for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(name, () => stop.abort())
await superviseBroker(brokerFolder(dataDir), systemClock, stop.signal)
