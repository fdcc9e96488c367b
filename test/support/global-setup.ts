import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { acquireBroker } from '../../src/embedded/embedded-broker.ts'
import type { EventFields, Observer } from '../../src/kernel/observe.ts'
import { brokerOptions } from './embedded.ts'
import { startTestRedis } from './test-redis.ts'

/**
 * Gives the tests a broker and a Redis: those named in MILLRACE_TEST_BROKERS and MILLRACE_TEST_REDIS, or own ones that end with the
 * run. MILLRACE_TEST_SERVICES=none starts none, for the tests that need none. Where one is missing and can't be had, the run fails and
 * says what to install.
 */
export default async function setup(): Promise<() => Promise<void>> {
  const stops: (() => Promise<void>)[] = []
  const teardown = async (): Promise<void> => {
    for (const stop of stops.reverse()) await stop()
  }
  if (process.env.MILLRACE_TEST_SERVICES === 'none') return teardown
  const wanted = [
    { name: 'MILLRACE_TEST_BROKERS', start: startBroker },
    { name: 'MILLRACE_TEST_REDIS', start: startRedis },
  ].filter(({ name }) => process.env[name] === undefined || process.env[name] === '')
  // All at once; what did start is stopped again when another did not.
  const started = await Promise.allSettled(
    wanted.map(async ({ name, start }) => {
      const service = await start()
      stops.push(service.stop)
      process.env[name] = service.address
    }),
  )
  const failures = started.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
  if (failures.length > 0) {
    await teardown()
    throw failures.length === 1 ? failures[0] : new AggregateError(failures, failures.map(String).join('\n'))
  }
  return teardown
}

interface StartedService {
  readonly address: string
  readonly stop: () => Promise<void>
}

async function startBroker(): Promise<StartedService> {
  const dataDir = mkdtempSync(join(tmpdir(), 'millrace-tests-'))
  const broker = await acquireBroker(brokerOptions(dataDir, announcing, 'npm test'))
  return {
    address: broker.brokers.join(','),
    stop: async () => {
      await broker.release()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

async function startRedis(): Promise<StartedService> {
  const redis = await startTestRedis(announcing)
  return { address: redis.url, stop: () => redis.stop() }
}

/** Says what is installed or downloaded before it is; the rest of a start takes a second or two and is silent. */
const announcing: Observer = {
  emit(event: string, fields: EventFields = {}): void {
    if (event !== 'DependencyInstalling') return
    process.stderr.write(
      `installing what the tests need: ${String(fields.what)}, by ${String(fields.by)} (MILLRACE_NO_INSTALL=1 refuses)\n`,
    )
  },
  child: () => announcing,
}
