import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { brokerFolder, readProcessFile } from '../../src/embedded/broker-folder.ts'
import type { AcquireBrokerOptions } from '../../src/embedded/broker-options.ts'
import { liveLeases } from '../../src/embedded/leases.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import type { EventFields, Observer } from '../../src/kernel/observe.ts'
import { isAlive, isLocal } from '../../src/machine/process-identity.ts'

/** Jars, template and class-data archive are shared with the user's own Millrace: made once on a machine. */
export function testCacheDir(): string {
  const base = process.env.XDG_CACHE_HOME
  return join(base === undefined || base === '' ? join(homedir(), '.cache') : base, 'millrace')
}

/** An observer that remembers. */
export class RecordingObserver implements Observer {
  readonly events: { readonly name: string; readonly fields: EventFields }[] = []

  emit(name: string, fields: EventFields = {}): void {
    this.events.push({ name, fields })
  }

  child(): Observer {
    return this
  }

  names(): string[] {
    return this.events.map((event) => event.name)
  }

  /** What was put right, in the words of the events. */
  repairs(): string[] {
    return this.events.filter((event) => event.name === 'BrokerRepaired').map((event) => String(event.fields.what))
  }
}

export function brokerOptions(dataDir: string, observer: Observer, owner = 'a test'): AcquireBrokerOptions {
  const javaHome = process.env.JAVA_HOME
  return {
    dataDir,
    cacheDir: testCacheDir(),
    clock: systemClock,
    observer,
    owner,
    installMissing: process.env.MILLRACE_NO_INSTALL !== '1',
    ...(javaHome === undefined ? {} : { javaHome }),
  }
}

export type BrokerStatus =
  | { readonly kind: 'down' }
  | {
      readonly kind: 'up' | 'starting'
      readonly port: number
      readonly clusterId: string
      readonly pid: number
      readonly kept: boolean
      /** Commands that use it. */
      readonly users: readonly string[]
    }

/** What runs in this data folder; changes nothing and does not wait. */
export function brokerStatus(dataDir: string): BrokerStatus {
  const folder = brokerFolder(dataDir)
  const file = readProcessFile(folder)
  if (file === undefined || file === 'broken' || !isLocal(file.broker) || !isAlive(file.broker) || file.phase === 'stopping')
    return { kind: 'down' }
  return {
    kind: file.phase,
    port: file.port,
    clusterId: file.clusterId,
    pid: file.broker.pid,
    kept: existsSync(folder.keep),
    users: liveLeases(folder).map((lease) => `${lease.owner} (pid ${lease.process.pid})`),
  }
}
