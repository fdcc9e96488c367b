import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { BaseService } from '../../../src/kernel/lifecycle.ts'
import { ServiceGroup, stopServices } from '../../../src/kernel/service-group.ts'

class Part extends BaseService {
  readonly #drain: (signal: AbortSignal) => Promise<void>

  constructor(drain: (signal: AbortSignal) => Promise<void>) {
    super()
    this.#drain = drain
  }

  protected async onStart(): Promise<void> {}

  protected onDrain(signal: AbortSignal): Promise<void> {
    return this.#drain(signal)
  }
}

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

const unhandled: unknown[] = []
const note = (error: unknown): void => void unhandled.push(error)
beforeEach(() => void process.on('unhandledRejection', note))
afterEach(() => void process.off('unhandledRejection', note))

describe('a second signal', () => {
  it('of a group whose part does not stop well is told to whoever stops it, and to nobody else', async () => {
    const stages = new ServiceGroup()
    let onDraining = (): void => undefined
    const draining = new Promise<void>((resolve) => {
      onDraining = resolve
    })
    const slow = (signal: AbortSignal): Promise<void> => {
      onDraining()
      return untilAborted(signal)
    }
    await stages.start('fetch', new Part(slow))
    // Stopped before the other one, which then drains.
    await stages.start('extract', new Part(() => Promise.reject(new Error('the broker is away'))))
    const aborting = new AbortController()
    const stopped = stopServices(stages, { mode: 'drain', timeoutMs: 60_000 }, aborting.signal)
    await draining
    aborting.abort()
    await expect(stopped).rejects.toMatchObject({ message: 'stopping extract failed' })
    await new Promise((resolve) => setImmediate(resolve))
    expect(unhandled).toEqual([])
  })
})

describe('the time that a group has for stopping', () => {
  it('is one for all of its parts, though each would take all of it', async () => {
    const stages = new ServiceGroup()
    const drained: string[] = []
    const slow = (name: string) => async (signal: AbortSignal) => {
      await untilAborted(signal)
      drained.push(name)
    }
    for (const name of ['extract', 'frontier', 'delay', 'fetch']) await stages.start(name, new Part(slow(name)))
    await stopServices(stages, { mode: 'drain', timeoutMs: 50 }, new AbortController().signal)
    // The others are not begun any more.
    expect(drained).toEqual(['fetch'])
  })
})
