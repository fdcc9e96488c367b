import type { KafkaMessage } from '../kafka/message.ts'
import { type Clock, within } from '../kernel/clock.ts'
import type { ProcessedPage, WaitingLimits } from './partition-port.ts'

export interface PageQueueOptions {
  /** What may wait here, as it is now. */
  readonly limits: () => WaitingLimits
  /** Pages in work at the same time. */
  readonly ahead: () => number
  readonly pause: () => void
  readonly resume: () => void
  /**
   * Begins the work on a page; `stop`: this offset and what follows is not for now. Resolves with undefined where the page waited for
   * its moment when the signal came, and is given back.
   */
  readonly process: (message: KafkaMessage, giveBack: AbortSignal) => Promise<ProcessedPage | undefined> | 'stop'
}

interface Working {
  readonly message: KafkaMessage
  readonly work: Promise<ProcessedPage | undefined>
}

/**
 * Pages of one partition between Kafka and the transaction: some wait, some are in work, all come out in order. Memory is bounded by
 * pausing the partition; a page in work is begun before its turn, so that extraction goes on while a transaction commits.
 */
export class PageQueue {
  readonly #options: PageQueueOptions
  readonly #waiting: KafkaMessage[] = []
  readonly #working: Working[] = []
  #giveBack = new AbortController()
  #waitingBytes = 0
  #paused = false
  #stopped = false
  #closed = false
  /** Next offset that may be added; what is below was handed over before. */
  #expected = 0n
  #position = 0n
  /** What `next` has told so far. */
  #reported = 0n
  #wake: (() => void) | undefined

  constructor(options: PageQueueOptions) {
    this.#options = options
  }

  /** Everything below this was handed over, or is nothing to show. Meaningful when the queue is dry. */
  get position(): bigint {
    return this.#stopped ? (this.#waiting[0]?.offset ?? this.#position) : this.#position
  }

  /** Some pages wait, and take memory. */
  get hasWaiting(): boolean {
    return this.#waiting.length > 0
  }

  /** Nothing that waits may begin until a reset. */
  get isHalted(): boolean {
    return this.#stopped
  }

  /** Nothing is in work, and nothing that waits may begin. */
  get isDry(): boolean {
    return this.#working.length === 0 && (this.#waiting.length === 0 || this.#stopped)
  }

  reset(offset: bigint): void {
    this.#giveBack.abort()
    this.#giveBack = new AbortController()
    this.#waiting.length = 0
    this.#working.length = 0
    this.#waitingBytes = 0
    this.#stopped = false
    this.#paused = false
    this.#expected = offset
    this.#position = offset
    this.#reported = offset
    this.#wake?.()
  }

  /** Nothing is added any more; who waits for a page is told when the queue is dry. */
  close(): void {
    this.#closed = true
    this.#wake?.()
  }

  /**
   * No further page begins until a reset; those that wait for their moment are given back; who waits for a page is told when the others in
   * work are through.
   */
  halt(): void {
    this.#stopped = true
    this.#giveBack.abort()
    this.#wake?.()
  }

  add(messages: readonly KafkaMessage[], position: bigint): void {
    if (this.#closed) return
    for (const message of messages) {
      if (message.offset < this.#expected) continue
      this.#waiting.push(message)
      this.#waitingBytes += message.value?.length ?? 0
      this.#expected = message.offset + 1n
    }
    if (position > this.#expected) this.#expected = position
    if (position > this.#position) this.#position = position
    const { maxWaitingBytes, maxWaitingPages } = this.#options.limits()
    if (!this.#paused && (this.#waitingBytes > maxWaitingBytes || this.#waiting.length > maxWaitingPages)) {
      this.#paused = true
      this.#options.pause()
    }
    this.#begin()
    this.#wake?.()
  }

  /**
   * The next page in order. Undefined when `wait` has passed; when the queue is dry and closed; and when it is dry although the
   * position moved, so that the caller can commit that.
   */
  async next(wait?: { readonly ms: number; readonly clock: Clock }): Promise<ProcessedPage | undefined> {
    for (;;) {
      this.#begin()
      const first = this.#working[0]
      if (first !== undefined) {
        const processed = await (wait === undefined ? first.work : within(wait.clock, wait.ms, first.work))
        // A reset while we waited: what was in work is void.
        if (processed === 'late' || this.#working[0] !== first) return undefined
        if (processed === undefined) return this.#takeBack()
        this.#working.splice(0, 1)
        this.#reported = processed.offset + 1n
        this.#begin()
        return processed
      }
      if (this.#closed || this.#stopped) return undefined
      if (this.isDry && this.#position > this.#reported) {
        this.#reported = this.#position
        return undefined
      }
      if ((await this.#changed(wait)) === 'late') return undefined
    }
  }

  /** What came behind a page that was given back is worked again, with it: pages come out in order. */
  #takeBack(): undefined {
    this.#stopped = true
    const given = this.#working.splice(0).map(({ message }) => message)
    this.#waiting.unshift(...given)
    this.#waitingBytes += given.reduce((sum, { value }) => sum + (value?.length ?? 0), 0)
  }

  #begin(): void {
    while (!this.#stopped && this.#working.length < this.#options.ahead()) {
      const message = this.#waiting[0]
      if (message === undefined) break
      const work = this.#options.process(message, this.#giveBack.signal)
      if (work === 'stop') {
        this.#stopped = true
        break
      }
      this.#waiting.shift()
      this.#waitingBytes -= message.value?.length ?? 0
      // A failure is met when its turn comes.
      work.catch(() => undefined)
      this.#working.push({ message, work })
    }
    this.#resume()
  }

  #resume(): void {
    if (!this.#paused) return
    const { maxWaitingBytes, maxWaitingPages } = this.#options.limits()
    if (this.#waitingBytes >= maxWaitingBytes / 2 || this.#waiting.length >= maxWaitingPages / 2) return
    this.#paused = false
    this.#options.resume()
  }

  #changed(wait: { readonly ms: number; readonly clock: Clock } | undefined): Promise<'changed' | 'late'> {
    return new Promise((resolve) => {
      const disarm = wait?.clock.timer(wait.ms, () => {
        this.#wake = undefined
        resolve('late')
      })
      this.#wake = () => {
        this.#wake = undefined
        disarm?.()
        resolve('changed')
      }
    })
  }
}
