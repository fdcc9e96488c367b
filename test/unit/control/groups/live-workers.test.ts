import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { isWorkerGone, type SwitchOptions, switchedWorkers } from '../../../../src/control/groups/live-workers.ts'
import { ownProcess } from '../../../../src/machine/process-identity.ts'
import type { WorkerHeartbeat } from '../../../../src/state/state-store.ts'
import { ManualClock } from '../../../support/manual-clock.ts'

const worker = (pid: number, version: number): WorkerHeartbeat => ({
  workerId: `w${pid}-${version}`,
  host: 'elsewhere',
  pid,
  pidStartedAt: '1',
  stage: 'extract',
  groupId: 'g',
  startedAt: 0,
  extractors: { book: version },
})

/** Runs a change-over to version 2; `look` gives the heartbeats by the second. Shape: what came of it, and after how many ms. */
async function changeOver(look: (second: number) => readonly WorkerHeartbeat[], options: Partial<SwitchOptions> = {}) {
  const clock = new ManualClock()
  const told: string[] = []
  let found: readonly WorkerHeartbeat[] | undefined
  const running = switchedWorkers({
    name: 'book',
    version: 2,
    expected: [worker(1, 1), worker(2, 1)],
    workers: async () => look(Math.floor(clock.mono() / 1000)),
    onWaiting: (text) => told.push(text),
    clock,
    signal: new AbortController().signal,
    ...options,
  }).then((workers) => {
    found = workers
  })
  while (found === undefined) await clock.advance(250)
  await running
  return { ms: clock.mono(), pids: found.map(({ pid }) => pid), told }
}

describe('a promotion', () => {
  it('waits for a worker that is between two versions, and says so once where it takes long', async () => {
    const { ms, pids, told } = await changeOver((second) => (second < 5 ? [worker(1, 2)] : [worker(1, 2), worker(2, 2)]))
    expect(pids).toEqual([1, 2])
    expect(ms).toBeGreaterThanOrEqual(5_000)
    expect(ms).toBeLessThan(6_500)
    expect(told).toEqual([
      'waiting for process 2 on elsewhere (silent: it changes over, or was killed) to run book version 2, 30 s at most; it is promoted already',
    ])
  })

  it('does not wait for a worker that was killed', async () => {
    const { ms, pids, told } = await changeOver((second) => (second < 1 ? [worker(1, 1)] : [worker(1, 2)]), {
      isGone: ({ pid }) => pid === 2,
    })
    expect(pids).toEqual([1])
    expect(ms).toBeLessThan(2_500)
    expect(told).toEqual([])
  })

  it('gives up on one that never runs the version', async () => {
    const { ms, pids, told } = await changeOver(() => [worker(1, 2), worker(2, 1)])
    expect([pids, told.length]).toEqual([[1, 2], 1])
    expect(ms).toBeGreaterThan(30_000)
    expect(ms).toBeLessThan(32_000)
  })
})

describe('a heartbeat', () => {
  it('is of a worker that is gone where its process has ended on this host, and of a live one where nobody here can tell', () => {
    const { host, pid, pidStartedAt } = ownProcess('w')
    const ended = spawnSync(process.execPath, ['-e', '']).pid
    expect(isWorkerGone({ host, pid, pidStartedAt })).toBe(false)
    expect(isWorkerGone({ host, pid, pidStartedAt: `${pidStartedAt}0` })).toBe(true)
    expect(isWorkerGone({ host, pid: ended, pidStartedAt: '1' })).toBe(true)
    expect(isWorkerGone({ host: 'elsewhere', pid: ended, pidStartedAt: '1' })).toBe(false)
  })
})
