import { setMaxListeners } from 'node:events'
import { abortAfter } from './clock.ts'
import { MillraceError } from './errors.ts'

/**
 * States of a service.
 *
 * idle      built, owns nothing yet                      -> starting
 * starting  acquiring what it needs                      -> running | failed
 * running   takes work                                   -> draining | closing | failed
 * draining  takes nothing new, finishes what it took     -> closing | failed
 * closing   gives back what it acquired, newest first    -> closed | failed
 * closed    done; `closed` has resolved
 * failed    could not go on; `closed` has rejected
 */
export type ServiceState = 'idle' | 'starting' | 'running' | 'draining' | 'closing' | 'closed' | 'failed'

const ALLOWED: Record<ServiceState, readonly ServiceState[]> = {
  idle: ['starting', 'closed'],
  starting: ['running', 'closing', 'failed'],
  running: ['draining', 'closing', 'failed'],
  draining: ['closing', 'failed'],
  closing: ['closed', 'failed'],
  closed: [],
  failed: [],
}

/** Drain finishes what was taken and takes nothing new; abort gives up now, uncommitted work comes again after a restart. */
export type StopMode = 'drain' | 'abort'

export interface StopOptions {
  readonly mode: StopMode
  /** How long a drain may take before it becomes an abort. */
  readonly timeoutMs: number
}

export interface Service {
  readonly state: ServiceState
  start(options?: { signal?: AbortSignal }): Promise<void>
  /** A second call returns the first promise; `abort` after `drain` escalates. */
  stop(options: StopOptions): Promise<void>
  /** Resolves when the service has closed; rejects with the reason when it failed by itself. */
  readonly closed: Promise<void>
}

/** Releases in the reverse order of acquiring. Every release is tried; what fails is gathered, none is dropped. */
export class ReleaseStack {
  readonly #releases: { readonly name: string; readonly release: () => Promise<void> | void }[] = []

  add(name: string, release: () => Promise<void> | void): void {
    this.#releases.push({ name, release })
  }

  async releaseAll(): Promise<void> {
    const failures: unknown[] = []
    for (let next = this.#releases.pop(); next !== undefined; next = this.#releases.pop()) {
      try {
        await next.release()
      } catch (error) {
        failures.push(new Error(`closing ${next.name} failed`, { cause: error }))
      }
    }
    if (failures.length === 1) throw failures[0]
    if (failures.length > 1) throw new AggregateError(failures, `${failures.length} parts failed to close`)
  }
}

/**
 * The life of a service in one place: subclasses say what to acquire, how to drain and (through `releases`) what to give back.
 * Guarantees: transitions are checked, `stop` is idempotent, a failure of the running service rejects `closed` after everything
 * acquired was released. It does not restart anything.
 */
export abstract class BaseService implements Service {
  #state: ServiceState = 'idle'
  #starting: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  /** What a part of it failed by while it drained. */
  #drainFailure: unknown
  readonly #settled: { resolve: () => void; reject: (reason: unknown) => void }
  readonly closed: Promise<void>
  protected readonly releases = new ReleaseStack()
  /** Aborted when the service must give up what is in flight. */
  protected readonly aborted = new AbortController()

  constructor() {
    let resolve!: () => void
    let reject!: (reason: unknown) => void
    this.closed = new Promise<void>((onResolve, onReject) => {
      resolve = onResolve
      reject = onReject
    })
    // As many may wait for the end of a service as there is work in it.
    setMaxListeners(0, this.aborted.signal)
    // Nobody has to listen to `closed`: a failure is also reported through `fail`.
    this.closed.catch(() => undefined)
    this.#settled = { resolve, reject }
  }

  get state(): ServiceState {
    return this.#state
  }

  protected abstract onStart(signal: AbortSignal): Promise<void>
  /** Finish what was taken. `signal` aborts at the deadline. */
  protected abstract onDrain(signal: AbortSignal): Promise<void>

  start(options: { signal?: AbortSignal } = {}): Promise<void> {
    this.#move('starting')
    this.#starting = this.#start(options)
    return this.#starting
  }

  async #start(options: { signal?: AbortSignal }): Promise<void> {
    try {
      const signal = options.signal ? AbortSignal.any([options.signal, this.aborted.signal]) : this.aborted.signal
      await this.onStart(signal)
      // Stopped or failed meanwhile, by a part that did not look at the signal.
      this.aborted.signal.throwIfAborted()
      this.#move('running')
    } catch (error) {
      // A start that was stopped is no failure of the service.
      await this.#close(this.#stopping === undefined ? error : undefined)
      throw error
    }
  }

  stop(options: StopOptions): Promise<void> {
    if (options.mode === 'abort') this.aborted.abort(new MillraceError('ABORTED', 'the service was stopped at once'))
    this.#stopping ??= this.#stop(options)
    return this.#stopping
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop({ mode: 'drain', timeoutMs: 30_000 })
  }

  /**
   * The running service can't go on: abort, release, reject `closed`. One that drains goes on with what is left, and rejects in the end.
   * Safe to call more than once.
   */
  protected fail(error: unknown): void {
    if (this.#state === 'draining') {
      if (!this.aborted.signal.aborted) this.#drainFailure ??= error
      return
    }
    if (this.#stopping !== undefined || this.#state === 'closed' || this.#state === 'failed') return
    this.aborted.abort(error)
    // A start that is under way ends by the signal, and closes by itself.
    if (this.#state !== 'starting') this.#stopping = this.#close(error)
  }

  async #stop(options: StopOptions): Promise<void> {
    if (this.#state === 'idle') {
      this.#move('closed')
      this.#settled.resolve()
      return
    }
    if (this.#state === 'starting') {
      this.aborted.abort(new MillraceError('ABORTED', 'the service was stopped while it started'))
      await Promise.allSettled([this.#starting])
    }
    if (this.#state === 'closed' || this.#state === 'failed') return
    let failure: unknown
    if (options.mode === 'drain' && this.#state === 'running') {
      this.#move('draining')
      const deadline = abortAfter(options.timeoutMs)
      try {
        await this.onDrain(AbortSignal.any([deadline, this.aborted.signal]))
      } catch (error) {
        // A drain that was cut short is no failure: what was not finished is not committed and comes again.
        if (!deadline.aborted && !this.aborted.signal.aborted) failure = error
      }
      failure ??= this.#drainFailure
      this.aborted.abort(new MillraceError('ABORTED', 'the service is closing'))
    }
    await this.#close(failure)
    if (failure !== undefined) throw failure
  }

  async #close(failure: unknown): Promise<void> {
    if (this.#state !== 'closing' && this.#state !== 'idle') this.#move('closing')
    try {
      await this.releases.releaseAll()
    } catch (error) {
      failure = failure === undefined ? error : new AggregateError([failure, error], 'the service failed, and so did closing it')
    }
    this.#move(failure === undefined ? 'closed' : 'failed')
    if (failure === undefined) this.#settled.resolve()
    else this.#settled.reject(failure)
  }

  #move(next: ServiceState): void {
    if (!ALLOWED[this.#state].includes(next)) {
      throw new MillraceError('INTERNAL', `a service can not go from ${this.#state} to ${next}`)
    }
    this.#state = next
  }
}
