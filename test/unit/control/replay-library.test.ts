import { describe, expect, it } from 'vitest'
import { createReplayLibrary, type ReplayInPlaceOptions } from '../../../src/control/replay-library.ts'

describe('a replay by the library', () => {
  const { signal } = new AbortController()
  const reached = new Error('a runtime was opened')
  const { run } = createReplayLibrary({
    open: () => Promise.reject(reached),
    find: () => Promise.reject(reached),
    track: (work) => work,
    draining: signal,
    aborting: signal,
    drainTimeoutMs: 1,
  })

  it.each([
    ['mode: undefined', {}],
    ['mode: "inplace"', { mode: 'inplace' }],
    ['rate: 0', { mode: 'in-place', rate: 0 }],
    ['rate: -1', { mode: 'shadow', rate: -1 }],
    ['rate: NaN', { mode: 'in-place', rate: Number.NaN }],
    ['rate: 5', { mode: 'in-place', rate: '5' }],
  ])('is refused before anything is opened for %s', async (message, options) => {
    const call = run({ extractor: 'book', ...options } as unknown as ReplayInPlaceOptions)
    await expect(call).rejects.toMatchObject({ code: 'USAGE', message: expect.stringContaining(message) })
  })

  it('is begun where mode and rate are right', async () => {
    await expect(run({ extractor: 'book', mode: 'in-place', rate: 0.5 })).rejects.toBe(reached)
  })
})
