import type { Clock } from '../kernel/clock.ts'
import type { Observer } from '../kernel/observe.ts'

/** What a user of the embedded broker says about itself and the machine. */
export interface AcquireBrokerOptions {
  /** The data folder of Millrace; the broker lives in its `kafka` folder. */
  readonly dataDir: string
  /** Folder of this user for what can be made again: the jars and what is derived from them. */
  readonly cacheDir: string
  readonly clock: Clock
  readonly observer: Observer
  /** The command, as people know it (`millrace run`): shown to those who are refused. */
  readonly owner: string
  /** The broker stays when its last user leaves, until `downBroker`. */
  readonly keep?: boolean
  /** A port to have, rather than the one of the last time. */
  readonly port?: number
  readonly javaHome?: string
  /** Missing Java or Maven may be installed from the distribution's packages. */
  readonly installMissing: boolean
  readonly signal?: AbortSignal
}

/** A broker that stays as long as this process lives and has not released it. */
export interface EmbeddedBroker {
  readonly brokers: string[]
  readonly clusterId: string
  readonly port: number
  /** Rejects when it has ended and nobody starts it again: KAFKA_LOST with the reason. Never resolves. */
  readonly lost: Promise<never>
  /**
   * Gives the lease back; the last one stops the broker. Shape: with `wait` (the default) it resolves when the broker has ended, where it
   * does end. A second call does nothing.
   */
  release(options?: { wait?: boolean }): Promise<void>
}
