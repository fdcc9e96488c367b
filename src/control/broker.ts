import type { Config } from '../config/options.ts'
import { downBroker, keepBroker } from '../embedded/embedded-broker.ts'
import type { Clock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import type { Observer } from '../kernel/observe.ts'
import { embeddedOptions } from './runtime/runtime.ts'

export interface BrokerVerb {
  readonly config: Config
  readonly clock: Clock
  readonly observer: Observer
  readonly signal: AbortSignal
}

/** Starts our own Kafka where it does not run, and keeps it until `down`. Errors: USAGE when brokers are configured. */
export async function up({ config, ...verb }: BrokerVerb, port: number | undefined): Promise<{ brokers: string; clusterId: string }> {
  if (config.brokers.length > 0)
    throw new MillraceError('USAGE', `brokers are configured (${config.brokers.join(', ')}): Millrace runs no Kafka of its own beside them`)
  const kept = await keepBroker({ ...embeddedOptions(config), ...verb, owner: 'millrace up', ...(port === undefined ? {} : { port }) })
  return { brokers: `127.0.0.1:${kept.port}`, clusterId: kept.clusterId }
}

/** Shape: false when none ran. Errors: DATA_DIR_LOCKED naming who still works with it. */
export function down({ config, ...verb }: BrokerVerb): Promise<boolean> {
  return downBroker({ dataDir: embeddedOptions(config).dataDir, ...verb })
}
