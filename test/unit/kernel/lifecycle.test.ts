import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/kernel/clock.ts'
import { BaseService, ReleaseStack } from '../../../src/kernel/lifecycle.ts'

/** A service whose steps are told from outside. */
class Probe extends BaseService {
  readonly log: string[] = []
  begin: (signal: AbortSignal) => Promise<void> = async () => undefined
  drain: (signal: AbortSignal) => Promise<void> = async () => undefined

  protected override async onStart(signal: AbortSignal): Promise<void> {
    this.releases.add('first', () => void this.log.push('first released'))
    this.releases.add('second', () => void this.log.push('second released'))
    await this.begin(signal)
  }

  protected override async onDrain(signal: AbortSignal): Promise<void> {
    await this.drain(signal)
    this.log.push('drained')
  }

  break(error: Error): void {
    this.fail(error)
  }
}

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
const drain = { mode: 'drain', timeoutMs: 1000 } as const

describe('a service', () => {
  it('drains, then gives back what it acquired, newest first', async () => {
    const probe = new Probe()
    await probe.start()
    await probe.stop(drain)
    expect(probe.log).toEqual(['drained', 'second released', 'first released'])
    expect(probe.state).toBe('closed')
    await probe.closed
  })

  it('gives the same promise to a second stop, and an abort cuts a drain short', async () => {
    const probe = new Probe()
    probe.drain = untilAborted
    await probe.start()
    const first = probe.stop({ mode: 'drain', timeoutMs: 60_000 })
    expect(probe.stop({ mode: 'abort', timeoutMs: 0 })).toBe(first)
    await first
    expect(probe.state).toBe('closed')
  })

  it('lets a drain take longer than a timer can', async () => {
    const probe = new Probe()
    probe.drain = (signal) => systemClock.sleep(20, signal)
    await probe.start()
    await probe.stop({ mode: 'drain', timeoutMs: 60 * 86_400_000 })
    expect(probe.log).toEqual(['drained', 'second released', 'first released'])
  })

  it('tells what a part of it failed by while it drained, when all that could be finished is', async () => {
    const probe = new Probe()
    probe.drain = async () => probe.break(new Error('the topic is gone'))
    await probe.start()
    await expect(probe.stop(drain)).rejects.toThrow('the topic is gone')
    expect(probe.log).toEqual(['drained', 'second released', 'first released'])
    expect(probe.state).toBe('failed')
    await expect(probe.closed).rejects.toThrow('the topic is gone')
  })

  it('does not take for a failure what ends with an abort', async () => {
    const probe = new Probe()
    probe.drain = (signal) => untilAborted(signal).catch((error) => probe.break(error))
    await probe.start()
    const stopped = probe.stop({ mode: 'drain', timeoutMs: 60_000 })
    void probe.stop({ mode: 'abort', timeoutMs: 0 })
    await stopped
    expect(probe.state).toBe('closed')
  })

  it('ends a drain at its deadline', async () => {
    const probe = new Probe()
    probe.drain = untilAborted
    await probe.start()
    await probe.stop({ mode: 'drain', timeoutMs: 20 })
    expect(probe.log).toEqual(['second released', 'first released'])
  })

  it('releases everything when its start fails', async () => {
    const probe = new Probe()
    probe.begin = async () => {
      throw new Error('no')
    }
    await expect(probe.start()).rejects.toThrow('no')
    expect(probe.state).toBe('failed')
    expect(probe.log).toEqual(['second released', 'first released'])
    await expect(probe.closed).rejects.toThrow('no')
  })

  it('may be stopped while it starts', async () => {
    const probe = new Probe()
    probe.begin = untilAborted
    const starting = probe.start()
    await probe.stop(drain)
    await expect(starting).rejects.toThrow('stopped while it started')
    expect(probe.state).toBe('closed')
    expect(probe.log).toEqual(['second released', 'first released'])
  })

  it('may fail while it starts, even when the start does not look at its signal', async () => {
    const probe = new Probe()
    probe.begin = async () => probe.break(new Error('broken'))
    await expect(probe.start()).rejects.toThrow('broken')
    expect(probe.state).toBe('failed')
    await expect(probe.closed).rejects.toThrow('broken')
  })

  it('rejects closed when it fails by itself, after everything was released', async () => {
    const probe = new Probe()
    await probe.start()
    probe.break(new Error('broken'))
    await expect(probe.closed).rejects.toThrow('broken')
    expect(probe.log).toEqual(['second released', 'first released'])
    await probe.stop(drain)
  })

  it('can be stopped before it was ever started', async () => {
    const probe = new Probe()
    await probe.stop(drain)
    expect(probe.state).toBe('closed')
  })
})

describe('the stack of releases', () => {
  it('tries every release and gathers what fails', async () => {
    const stack = new ReleaseStack()
    const done: string[] = []
    stack.add('a', () => void done.push('a'))
    stack.add('b', () => Promise.reject(new Error('b failed')))
    stack.add('c', () => Promise.reject(new Error('c failed')))
    await expect(stack.releaseAll()).rejects.toThrow(AggregateError)
    expect(done).toEqual(['a'])
  })
})
