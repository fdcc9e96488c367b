import { abortAfter } from './clock.ts'
import { countText } from './count-text.ts'
import type { Service, StopOptions } from './lifecycle.ts'

interface Part {
  readonly name: string
  readonly service: Service
}

/**
 * Services that run together: started in order, stopped in the reverse one, each drained before what it writes to. When one of them
 * can't go on, `failed` rejects with its reason, and whoever holds the group stops the rest.
 */
export class ServiceGroup {
  readonly #parts: Part[] = []
  readonly #failures: Promise<never>[] = []
  #stopping: Promise<void> | undefined
  #aborting = false

  async start(name: string, service: Service, signal?: AbortSignal): Promise<void> {
    await service.start(signal === undefined ? {} : { signal })
    this.#parts.push({ name, service })
    const failed = service.closed.then(
      // A service that was stopped fails nobody.
      () => new Promise<never>(() => undefined),
      (error: unknown) => Promise.reject(new Error(`${name} could not go on`, { cause: error })),
    )
    failed.catch(() => undefined)
    this.#failures.push(failed)
  }

  /** Something that the parts stand on, and whose end is theirs. */
  watch(failure: Promise<never>): void {
    failure.catch(() => undefined)
    this.#failures.push(failure)
  }

  /** Rejects when a part fails; never resolves. */
  get failed(): Promise<never> {
    return Promise.race(this.#failures)
  }

  /** Every part is tried; what fails is gathered. An abort while a drain is under way reaches the parts that still drain. */
  async stop(options: StopOptions): Promise<void> {
    // Whoever drains it is told what fails.
    if (options.mode === 'abort')
      for (const { service } of this.#parts) if (service.state === 'draining') service.stop(options).catch(() => undefined)
    this.#stopping ??= this.#stopAll(options)
    if (options.mode === 'abort') this.#aborting = true
    return this.#stopping
  }

  async #stopAll(options: StopOptions): Promise<void> {
    const failures: unknown[] = []
    for (const { name, service } of [...this.#parts].reverse()) {
      try {
        if (service.state === 'running') await service.stop(this.#aborting ? { mode: 'abort', timeoutMs: 0 } : options)
      } catch (error) {
        failures.push(new Error(`stopping ${name} failed`, { cause: error }))
      }
    }
    if (failures.length === 1) throw failures[0]
    if (failures.length > 1) throw new AggregateError(failures, `${countText(failures.length, 'part')} did not stop well`)
  }
}

/** Stops a group within `timeoutMs`, however many parts it has; the end of that time, or the second signal, turns a drain into an abort. */
export async function stopServices(group: ServiceGroup, options: StopOptions, aborting: AbortSignal): Promise<void> {
  // What fails is told by the call that is waited for; a second word of it would end the process before the rest is given back.
  const onAbort = (): void => void group.stop({ mode: 'abort', timeoutMs: 0 }).catch(() => undefined)
  const cut = AbortSignal.any([aborting, abortAfter(options.timeoutMs)])
  cut.addEventListener('abort', onAbort, { once: true })
  try {
    await group.stop(options)
  } finally {
    cut.removeEventListener('abort', onAbort)
  }
}
