import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { bootId, hostIdentity, isAlive, isGone, ownIdentity, ownProcess, processStartedAt } from '../../../src/machine/process-identity.ts'

describe('process identity', () => {
  it('knows this process, and that it is there', () => {
    const own = ownProcess('w')
    expect(own).toMatchObject({ workerId: 'w', pid: process.pid, host: hostIdentity() })
    expect(own.pidStartedAt).not.toBe('')
    expect(isGone(own)).toBe(false)
    expect(bootId()).toBe(bootId())
  })

  it('knows that a process has ended, or that its number belongs to another one by now', async () => {
    const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'])
    await once(child, 'spawn')
    const pid = child.pid ?? 0
    const pidStartedAt = processStartedAt(pid) ?? ''
    expect(isGone({ pid, pidStartedAt })).toBe(false)
    expect(isGone({ pid, pidStartedAt: '' })).toBe(false)
    expect(isGone({ pid, pidStartedAt: 'before' })).toBe(true)
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
    expect(isGone({ pid, pidStartedAt })).toBe(true)
    expect(isGone({ pid, pidStartedAt: '' })).toBe(true)
  })

  it('takes a process that the system hides for one that is there', () => {
    const hidden = () => ({ kind: 'hidden' }) as const
    expect(isGone({ pid: 4711, pidStartedAt: '1' }, hidden)).toBe(false)
    expect(isAlive(ownIdentity(), hidden)).toBe(true)
    const ended = () => ({ kind: 'ended' }) as const
    expect(isGone({ pid: 4711, pidStartedAt: '1' }, ended)).toBe(true)
    expect(isAlive(ownIdentity(), ended)).toBe(false)
  })

  it('never takes a number that is no pid for a process', () => {
    for (const pid of [0, -1, Number.NaN]) expect(isGone({ pid, pidStartedAt: '' })).toBe(true)
  })
})
