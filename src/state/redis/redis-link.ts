import { Redis, type RedisOptions } from 'ioredis'
import type { Clock } from '../../kernel/clock.ts'
import { errorText, MillraceError } from '../../kernel/errors.ts'
import type { Observer } from '../../kernel/observe.ts'
import { type TlsMaterial, tlsFault } from '../../kernel/tls-fault.ts'
import { readTlsFiles } from '../../machine/tls-files.ts'
import { isReadOnly, refusalOf } from './redis-refusal.ts'
import { REDIS_TLS_NAMES, type RedisAddress } from './redis-url.ts'
import * as limiter from './scripts/limiter.ts'
import * as work from './scripts/work.ts'

/**
 * The connection to Redis. Guarantees: a call answers or fails with STATE_UNAVAILABLE within `CALL_MS`, whether the server is gone, hangs
 * or was never reached; a lost connection comes back by itself; nothing is queued for a server that is away, so no request of
 * yesterday takes a lease today. Calls of one turn share a pipeline.
 */
const CALL_MS = 900
const OPEN_MS = 5_000
const CLOSE_MS = 1_500
/** A server that does not say a word for this long while it owes an answer is taken for dead: the connection is made anew. */
const SILENCE_MS = 2_000
const RECONNECT_FIRST_MS = 50
const RECONNECT_MAX_MS = 1_000

const SCRIPTS = {
  acquireLease: limiter.ACQUIRE,
  releaseLease: limiter.RELEASE,
  endGoneLeases: limiter.END_GONE,
  reportLateStart: limiter.LATE,
  startLeaseAgain: limiter.START_AGAIN,
  reassertKey: limiter.REASSERT,
  resetKey: limiter.RESET,
  limiterState: limiter.LIMITER_STATE,
  spillSlot: limiter.SPILL_SLOT,
  beginDeployment: limiter.BIRTH,
  claimUrls: work.CLAIM,
  lookUpClaims: work.LOOK_UP_CLAIMS,
  markFinished: work.MARK_FINISHED,
  acceptTasks: work.ACCEPT,
  finaliseTasks: work.FINALISE,
  dropOpenTasks: work.DROP_OPEN,
  sizesOf: work.SIZES_OF,
  openCrawls: work.OPEN_CRAWLS,
  endedCrawls: work.ENDED_CRAWLS,
  forgetCrawl: work.FORGET_CRAWL,
  reserveBudgets: work.RESERVE,
  removeFromSets: work.REMOVE_FROM_SETS,
  announceWorker: work.HEARTBEAT,
  removeWorker: work.REMOVE_WORKER,
  listWorkers: work.WORKERS,
} as const
export type ScriptName = keyof typeof SCRIPTS

type Argument = string | number
type Scripted = Record<ScriptName, (keyCount: number, ...args: Argument[]) => Promise<unknown>>

export class RedisLink {
  readonly location: string
  readonly #redis: Redis
  readonly #tls: TlsMaterial
  readonly #clock: Clock
  readonly #observer: Observer
  #server: string | undefined
  #lastError: Error | undefined
  /** The server has said on this connection why it does not take us. */
  #wasTold = false
  #wasLost = false
  #isClosing = false

  /** Errors: CONFIG_INVALID, CONFIG_UNREADABLE, for the files of the address. */
  constructor(address: RedisAddress, parts: { clock: Clock; observer: Observer }) {
    this.location = address.location
    this.#clock = parts.clock
    this.#observer = parts.observer
    this.#tls = readTlsFiles(address.files, REDIS_TLS_NAMES)
    this.#redis = new Redis(connectionOptions(address, this.#tls))
    // Every call that waits for a connection listens.
    this.#redis.setMaxListeners(0)
    for (const [name, lua] of Object.entries(SCRIPTS)) this.#redis.defineCommand(name, { lua })
    this.#listen()
  }

  /**
   * Which start of which server answers; undefined: it does not tell. Known before anything that is asked on its connection is answered.
   */
  get server(): string | undefined {
    return this.#server
  }

  /** Errors: REDIS_UNREACHABLE, saying which address and why. */
  async open(): Promise<void> {
    try {
      await this.#within(OPEN_MS, this.#redis.connect())
    } catch (error) {
      this.#redis.disconnect()
      const failure = this.#lastError ?? error
      const reason = tlsFault(failure, this.#tls, REDIS_TLS_NAMES) ?? errorText(failure)
      throw new MillraceError(
        'REDIS_UNREACHABLE',
        `Redis at ${this.location} was not reached: ${sentence(reason)} ${refusalOf(reason).hint}`,
        {
          cause: withoutCommand(failure),
        },
      )
    }
  }

  /** Runs a script: one atomic step on the server. `onSend` is called before it leaves: where it was not, the server never learns of it. */
  script(name: ScriptName, keys: readonly string[], args: readonly Argument[], onSend?: () => void): Promise<unknown> {
    return this.call(name, () => {
      onSend?.()
      return (this.#redis as unknown as Scripted)[name](keys.length, ...keys, ...args)
    })
  }

  /** Runs a command. `what` names it in the error. Errors: STATE_UNAVAILABLE; REDIS_REFUSED, where the server refused this very call. */
  async call<T>(what: string, run: (redis: Redis) => Promise<T>): Promise<T> {
    try {
      return await this.#within(CALL_MS, this.#whenReady(run))
    } catch (error) {
      throw redisError(error, what, this.location, this.#lastError)
    }
  }

  async close(): Promise<void> {
    if (this.#isClosing) return
    this.#isClosing = true
    try {
      if (this.#redis.status === 'ready') await this.#within(CLOSE_MS, this.#redis.quit())
    } catch (error) {
      // A server that is away needs no farewell; the connection is closed below.
      this.#lastError = withoutCommand(error)
    } finally {
      this.#redis.disconnect()
    }
  }

  #listen(): void {
    this.#redis.on('error', (error: unknown) => {
      // What the server said before it hung up says more than the writes that failed behind it.
      if (!this.#wasTold || isReply(error)) this.#lastError = withoutCommand(error)
      this.#wasTold ||= isReply(error)
      // ioredis would go on in database 0.
      if (nameOfCommand(error) === 'select') this.#redis.disconnect(true)
    })
    this.#redis.on('connect', () => {
      this.#wasTold = false
    })
    this.#redis.on('close', () => {
      if (this.#wasLost || this.#isClosing) return
      this.#wasLost = true
      this.#observer.emit('StateStoreLost', { location: this.location, ...(this.#lastError ? { error: this.#lastError } : {}) })
    })
    this.#redis.on('ready', () => {
      this.#lastError = undefined
      const learn = (info: string): void => {
        this.#server = /^run_id:(\w+)/m.exec(info)?.[1]
      }
      // The first command of the connection. One that may not be asked is no other server.
      this.#redis.info('server').then(learn, () => undefined)
      if (this.#wasLost) this.#observer.emit('StateStoreFound', { location: this.location })
      this.#wasLost = false
    })
  }

  async #whenReady<T>(run: (redis: Redis) => Promise<T>): Promise<T> {
    if (this.#isClosing) throw new Error('it was asked for something after it was closed')
    if (this.#redis.status !== 'ready') await this.#ready()
    return run(this.#redis)
  }

  /** A short break is bridged: waits for the connection, but no longer than a call may take. */
  #ready(): Promise<void> {
    return new Promise((resolve, reject) => {
      const disarm = this.#clock.timer(CALL_MS, () => {
        this.#redis.off('ready', onReady)
        reject(new Error('there is no connection'))
      })
      const onReady = (): void => {
        disarm()
        resolve()
      }
      this.#redis.once('ready', onReady)
    })
  }

  #within<T>(ms: number, work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const disarm = this.#clock.timer(ms, () => reject(new Error(`there was no answer within ${ms} ms`)))
      work.then(resolve, reject).finally(disarm)
    })
  }
}

/** `replyMapping` decides the type of the client and is left as it is. */
type Options = Omit<RedisOptions, 'replyMapping'>

function connectionOptions(address: RedisAddress, material: TlsMaterial): Options {
  const { target } = address
  const credentials = {
    ...(address.username === undefined ? {} : { username: address.username }),
    ...(address.password === undefined ? {} : { password: address.password }),
  }
  const tls = address.tls ? { ...material } : undefined
  const place: Options =
    target.kind === 'server'
      ? { host: target.host, port: target.port, ...(tls === undefined ? {} : { tls }) }
      : {
          sentinels: target.sentinels.map((sentinel) => ({ ...sentinel })),
          name: target.name,
          sentinelRetryStrategy: reconnectAfter,
          ...(target.sentinelPassword === undefined ? {} : { sentinelPassword: target.sentinelPassword }),
          // The sentinels are asked the same way as the server that they name, and hear a password too.
          ...(tls === undefined ? {} : { tls, sentinelTLS: tls, enableTLSForSentinelMode: true }),
        }
  return {
    ...place,
    ...credentials,
    db: address.db,
    lazyConnect: true,
    enableAutoPipelining: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    // What a server says to a client that it does not take is the answer to the first command: to this one ioredis would not listen.
    disableClientInfo: true,
    // What was under way when a connection ended fails with it. At 1 and more it would never be answered at all where the next connection
    // stands at the first try, and every later call would wait behind it in the pipeline.
    maxRetriesPerRequest: 0,
    connectTimeout: 2_000,
    socketTimeout: SILENCE_MS,
    retryStrategy: reconnectAfter,
    // After a failover the old leader only takes readers: connect anew, to be led to the new one.
    reconnectOnError: ({ message }) => isReadOnly(message),
  }
}

function reconnectAfter(times: number): number {
  return Math.min(RECONNECT_MAX_MS, RECONNECT_FIRST_MS * 2 ** Math.min(times, 10))
}

function redisError(error: unknown, what: string, location: string, lastError: Error | undefined): MillraceError {
  if (error instanceof MillraceError) return error
  // What the server said to this call. All else is of the connection, whatever it said when that was made: then nobody knows what it says
  // to the call.
  const isAnswer = isReply(error)
  const refused = isAnswer || lastError === undefined ? error : lastError
  const reason = errorText(refused)
  const { kind, hint } = refusalOf(reason)
  const cause = withoutCommand(refused)
  if (isAnswer && kind === 'broken')
    return new MillraceError('REDIS_REFUSED', `Redis at ${location} refused ${what}: ${sentence(reason)} ${hint}`, { cause })
  return new MillraceError('STATE_UNAVAILABLE', `Redis at ${location} did not do ${what}: ${sentence(reason)} ${hint}`, { cause })
}

/** Replies of scripts end with a full stop, others do not. */
function sentence(reason: string): string {
  return reason.endsWith('.') ? reason : `${reason}.`
}

function isReply(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError'
}

function nameOfCommand(error: unknown): string | undefined {
  return (error as { command?: { name?: string } } | undefined)?.command?.name
}

/** ioredis hangs the command with all its arguments on an error, AUTH with the password: only name, code and text are kept. */
function withoutCommand(error: unknown): Error {
  const copy = new Error(errorText(error))
  if (error instanceof Error) {
    copy.name = error.name
    if ('code' in error) Object.assign(copy, { code: error.code })
    if (error.stack !== undefined) copy.stack = error.stack
  }
  return copy
}
