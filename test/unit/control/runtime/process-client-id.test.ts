import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { isClientGone, processClientId } from '../../../../src/control/runtime/process-client-id.ts'

/** The client id of this process with another pid in it. */
const withPid = (pid: number): string => processClientId('millrace').replace(/#\d+#/, `#${pid}#`)

describe('client id of a process', () => {
  it('begins with what people chose, and is that of a living process', () => {
    expect(processClientId('shop-7')).toMatch(/^shop-7#\d+#[0-9a-f]{12}#[0-9a-f]{12}$/)
    expect(isClientGone(processClientId('shop#7'))).toBe(false)
  })

  it('tells that a process has ended, also where another one has its pid by now', async () => {
    const child = spawn(process.execPath, ['-e', ''])
    await once(child, 'exit')
    expect(isClientGone(withPid(child.pid as number))).toBe(true)
    expect(isClientGone(withPid(process.ppid))).toBe(true)
  })

  it('says nothing of processes of other hosts, and of clients that are not ours', () => {
    expect(isClientGone(withPid(999_999_999).replace(/#[0-9a-f]{12}#/, '#000000000000#'))).toBe(false)
    expect(isClientGone('millrace')).toBe(false)
    expect(isClientGone('kafka-python-2.0#12')).toBe(false)
  })
})
