import type { Clock } from '../kernel/clock.ts'
import { errorText, isMillraceError, MillraceError } from '../kernel/errors.ts'
import { BaseService } from '../kernel/lifecycle.ts'
import type { Observer } from '../kernel/observe.ts'
import type { Command } from '../message/generated/types.ts'
import type { KafkaClient } from './client.ts'
import { ClusterSession } from './cluster-session.ts'
import { readLog } from './log-reader.ts'
import type { KafkaMessage } from './message.ts'
import { LATEST, listOffsets, offsetAt } from './offsets.ts'
import type { MessageProducer } from './producer.ts'

export interface ControlLogOptions {
  readonly client: KafkaClient
  readonly clock: Clock
  readonly observer: Observer
  /** The control topic. */
  readonly topic: string
  /** Awaited before values are decoded: for what they need to be read. Rejects when the service ends with it. */
  readonly learn?: (values: readonly (Buffer | null)[], signal: AbortSignal) => Promise<void>
  /** Throws where the bytes are no command. */
  readonly decode: (value: Buffer) => Command
  /** True for a command that counts for nothing beside the one that its subject holds; it is as if it had not been written. */
  readonly passOver?: (held: Command, next: Command) => boolean
  /** True for subjects that are none of a log of commands: what is written in transactions, which may be open or have been aborted. */
  readonly isTransactional?: (subject: string) => boolean
}

/** A command as it lies on the log. */
export interface LoggedCommand {
  readonly command: Command
  readonly offset: bigint
}

/** The control topic has one partition, so that its commands have one order. */
const PARTITION = 0

/**
 * The commands of the control topic: read from its beginning, then followed. The last command of a subject wins, where
 * `passOver` does not say otherwise. Nobody writes commands in transactions, so a transaction that is open on the topic holds up none.
 *
 * starting: opens nothing that has to be awaited; `ready` tells when what was there at the start has been read.
 * running:  follows; a broker that is away is waited for, what was read stays readable.
 * A topic that is gone, or can't be reached at the start, ends the service and rejects `ready` and `closed`.
 */
export class ControlLog extends BaseService {
  readonly #options: ControlLogOptions
  readonly #session: ClusterSession
  readonly #bySubject = new Map<string, LoggedCommand>()
  /** Last messages of subjects, by their keys, that say something to others and nothing here. */
  readonly #unreadable = new Map<string, { readonly offset: bigint; readonly error: MillraceError }>()
  readonly #listeners = new Set<(logged: LoggedCommand) => void>()
  readonly #waiting = new Set<{ readonly offset: bigint; readonly resolve: () => void; readonly reject: (error: unknown) => void }>()
  readonly #settleReady: { resolve: () => void; reject: (error: unknown) => void }
  /** Resolves when everything that was on the topic at the start has been read. */
  readonly ready: Promise<void>
  #position = 0n
  #undecodableCount = 0

  constructor(options: ControlLogOptions) {
    super()
    this.#options = options
    this.#session = new ClusterSession({ client: options.client, clock: options.clock })
    const settle: { resolve: () => void; reject: (error: unknown) => void } = { resolve: () => undefined, reject: () => undefined }
    this.ready = new Promise<void>((resolve, reject) => {
      settle.resolve = resolve
      settle.reject = reject
    })
    // Nobody has to wait for it: the failure also rejects `closed`.
    this.ready.catch(() => undefined)
    this.#settleReady = settle
  }

  /** Next offset to read. */
  get position(): bigint {
    return this.#position
  }

  /** Messages that were no commands and were passed over. */
  get undecodableCount(): number {
    return this.#undecodableCount
  }

  /** The last command of a subject; undefined where there is none. */
  get(subject: string): Command | undefined {
    return this.#bySubject.get(subject)?.command
  }

  /** Where that lies on the log. */
  offsetOf(subject: string): bigint | undefined {
    return this.#bySubject.get(subject)?.offset
  }

  /**
   * To be asked before anything is written to a subject: what can't be read here is not what is not there, and would be lost. Errors:
   * CONTROL_UNREADABLE where the schema of its last message is not known here, since another registry or a newer release has it. What
   * nobody can read counts for nothing.
   */
  requireReadable(subject: string): void {
    const last = this.#unreadable.get(subject)
    if (last === undefined) return
    const { topic } = this.#options
    throw new MillraceError(
      'CONTROL_UNREADABLE',
      `what ${topic} holds of ${subject} (offset ${last.offset}) can't be read here, and nothing is written over it: ${last.error.message}`,
      { cause: last.error },
    )
  }

  /** The last commands of all subjects that begin so, in the order in which they were written. */
  withPrefix(prefix: string): Command[] {
    return [...this.#bySubject.entries()]
      .filter(([subject]) => subject.startsWith(prefix))
      .sort(([, a], [, b]) => (a.offset < b.offset ? -1 : 1))
      .map(([, { command }]) => command)
  }

  /**
   * Calls the listener for each command that is read from now on, superseded ones included. Shape: a function that ends it. A
   * listener that throws ends the service: a command that was half obeyed must not be passed over.
   */
  subscribe(listener: (logged: LoggedCommand) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Resolves when everything that is on the topic now has been read: who has waited for this knows all that was said before.
   * Errors: KAFKA_UNREACHABLE, KAFKA_TOPIC_MISSING, ABORTED when the service ends first.
   */
  async readToEnd(): Promise<void> {
    const { topic } = this.#options
    const at = { topic, partition: PARTITION }
    const offset = await this.#session.run('reading the end of the control log', async (cluster) =>
      offsetAt(await listOffsets(cluster, [at], LATEST, 'read_uncommitted'), at),
    )
    if (this.#position >= offset) return
    if (this.state !== 'running' && this.state !== 'starting') throw this.#ended()
    await new Promise<void>((resolve, reject) => this.#waiting.add({ offset, resolve, reject }))
  }

  protected async onStart(): Promise<void> {
    this.releases.add('connections of the control log', () => this.#session.close())
    const reading = this.#read()
    this.releases.add('reader of the control log', () => reading)
  }

  protected async onDrain(): Promise<void> {
    // It takes nothing that would have to be finished.
  }

  async #read(): Promise<void> {
    const { client, clock, observer, topic } = this.#options
    try {
      const from = new Map([[topic, new Map([[PARTITION, 'earliest' as const]])]])
      const reading = { client, clock, observer, from, follow: true, isolation: 'read_uncommitted', signal: this.aborted.signal } as const
      for await (const event of readLog(reading)) {
        if (event.kind === 'batch') await this.#takeAll(event.messages)
        this.#moveTo(event.kind === 'out-of-range' ? event.to : event.position)
        if (event.kind === 'end') this.#settleReady.resolve()
      }
      this.#settle(this.#ended())
    } catch (error) {
      this.#settle(error)
      this.fail(error)
    }
  }

  async #takeAll(messages: readonly KafkaMessage[]): Promise<void> {
    await this.#options.learn?.(
      messages.map(({ value }) => value),
      this.aborted.signal,
    )
    for (const message of messages) this.#take(message)
  }

  #take(message: KafkaMessage): void {
    if (message.value === null) {
      // Whoever knows that what stands there is nothing has taken it away.
      if (message.key !== null) this.#unreadable.delete(message.key.toString('utf8'))
      return
    }
    let command: Command
    try {
      command = this.#options.decode(message.value)
    } catch (error) {
      // A newer release may have written it, or a stranger: what we can't read we can't obey.
      this.#undecodableCount += 1
      this.#options.observer.emit('CommandUndecodable', { topic: message.topic, offset: message.offset, text: errorText(error) })
      this.#keepUnreadable(message, error)
      return
    }
    this.#unreadable.delete(command.subject)
    if (this.#options.isTransactional?.(command.subject) === true) return
    const held = this.#bySubject.get(command.subject)?.command
    if (held !== undefined && this.#options.passOver?.(held, command) === true) return
    const logged = { command, offset: message.offset }
    this.#bySubject.set(command.subject, logged)
    this.#options.observer.emit('CommandRead', { subject: command.subject, kind: command.kind, offset: message.offset })
    for (const listener of [...this.#listeners]) listener(logged)
  }

  #keepUnreadable({ key, offset }: KafkaMessage, error: unknown): void {
    const subject = key?.toString('utf8')
    if (subject === undefined || this.#options.isTransactional?.(subject) === true) return
    if (isMillraceError(error, 'MESSAGE_SCHEMA_UNKNOWN') || isMillraceError(error, 'SCHEMA_INCOMPATIBLE'))
      this.#unreadable.set(subject, { offset, error })
  }

  #moveTo(position: bigint): void {
    this.#position = position
    for (const waiter of [...this.#waiting]) {
      if (position < waiter.offset) continue
      this.#waiting.delete(waiter)
      waiter.resolve()
    }
  }

  /** Whoever still waits is told why it will not come. Without effect on what has resolved. */
  #settle(error: unknown): void {
    this.#settleReady.reject(error)
    for (const waiter of this.#waiting) waiter.reject(error)
    this.#waiting.clear()
  }

  #ended(): MillraceError {
    return new MillraceError('ABORTED', `the control log is ${this.state}: it reads no more commands`)
  }
}

/** Writes a command; resolves when it is stored. `encode` gives its bytes and headers. Errors: those of the producer. */
export async function publishCommand(
  producer: MessageProducer,
  topic: string,
  command: Command,
  encode: (command: Command) => { readonly value: Buffer; readonly headers?: Readonly<Record<string, string | Buffer>> },
  options: { signal?: AbortSignal } = {},
): Promise<void> {
  const { value, headers } = encode(command)
  const message = { topic, partition: PARTITION, key: command.subject, value, ...(headers === undefined ? {} : { headers }) }
  await producer.send([message], options)
}
