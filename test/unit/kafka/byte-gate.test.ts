import { describe, expect, it } from 'vitest'
import { ByteGate } from '../../../src/kafka/byte-gate.ts'

/** Whether a promise has settled once all that can go on without it has. */
async function settled(promise: Promise<unknown>): Promise<boolean> {
  return Promise.race([promise.then(() => true), new Promise<boolean>((resolve) => setImmediate(() => resolve(false)))])
}

describe('byte gate', () => {
  it('admits in order and makes those wait that do not fit', async () => {
    const gate = new ByteGate(100)
    await gate.enter(60)
    const [second, third] = [gate.enter(50), gate.enter(10)]
    // The third would fit; it must not overtake.
    expect([await settled(second), await settled(third)]).toEqual([false, false])
    gate.leave(60)
    await Promise.all([second, third])
    expect(gate.heldBytes).toBe(60)
  })

  it('admits what is above its bound when nothing else is held', async () => {
    const gate = new ByteGate(100)
    await gate.enter(500)
    const next = gate.enter(1)
    expect(await settled(next)).toBe(false)
    gate.leave(500)
    await next
  })

  it('lets go of a waiter whose signal aborts, and of those behind it', async () => {
    const gate = new ByteGate(100)
    await gate.enter(60)
    const abort = new AbortController()
    const large = gate.enter(90, abort.signal)
    const small = gate.enter(10)
    abort.abort()
    await expect(large).rejects.toMatchObject({ code: 'ABORTED' })
    await small
    expect(gate.heldBytes).toBe(70)
  })

  it('refuses all once it is closed', async () => {
    const gate = new ByteGate(10)
    await gate.enter(10)
    const waiting = gate.enter(5)
    gate.close(new Error('over'))
    await expect(waiting).rejects.toThrow('over')
    await expect(gate.enter(1)).rejects.toThrow('over')
  })
})
