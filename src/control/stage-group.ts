import type { Service, StopOptions } from '../kernel/lifecycle.ts'

interface Part {
  readonly name: string
  readonly service: Service
}

/**
 * Services that run together: started in order, stopped in the reverse one, each drained before what it writes to. When one of them
 * can't go on, `failed` rejects with its reason, and whoever holds the group stops the rest.
 */
export class StageGroup {
  readonly #parts: Part[] = []
  readonly #failures: Promise<never>[] = []

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

  /** Rejects when a part fails; never resolves. */
  get failed(): Promise<never> {
    return Promise.race(this.#failures)
  }

  /** Every part is tried; what fails is gathered. */
  async stop(options: StopOptions): Promise<void> {
    const failures: unknown[] = []
    for (const { name, service } of this.#parts.splice(0).reverse()) {
      try {
        if (service.state === 'running') await service.stop(options)
      } catch (error) {
        failures.push(new Error(`stopping ${name} failed`, { cause: error }))
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, `${failures.length} parts did not stop well`)
  }
}
