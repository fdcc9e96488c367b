import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { bootId, hostIdentity, isGone, ownProcess, processStartedAt } from '../../../src/state/process-identity.ts'

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
})
