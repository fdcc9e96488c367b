import { tmpdir } from 'node:os'
import { describe, expect, it } from 'vitest'
import type { Runtime } from '../../../../src/control/runtime/runtime.ts'
import { startDiskGuard } from '../../../../src/control/stages/disk-guard.ts'
import { eventually } from '../../../support/eventually.ts'
import { recordingObserver } from '../../../support/kafka-fixture.ts'
import { ManualClock } from '../../../support/manual-clock.ts'

describe('the guard of the disk', () => {
  it('says when fetching is to be held and when it goes on, at changes alone', async () => {
    const [clock, seen, said] = [new ManualClock(), recordingObserver(), [] as boolean[]]
    let [minFreeBytes, looks] = [0, 0]
    const config = {
      get 'fetch.minFreeDisk'() {
        looks += 1
        return minFreeBytes
      },
    }
    const runtime = { isEmbedded: true, dataDir: tmpdir(), clock, config, observer: seen.observer } as unknown as Runtime
    const stop = await startDiskGuard(runtime, { holdRequests: (isHeld) => void said.push(isHeld) })
    const look = async (): Promise<void> => {
      const before = looks
      await eventually(async () => {
        await clock.advance(5_000)
        return looks > before
      })
    }
    await look()
    expect(said).toEqual([])
    minFreeBytes = Number.MAX_SAFE_INTEGER
    for (let times = 0; times < 3; times += 1) await look()
    expect(said).toEqual([true])
    // It is still said how full the disk is.
    expect(seen.count('DiskLow')).toBeGreaterThanOrEqual(3)
    minFreeBytes = 0
    for (let times = 0; times < 3; times += 1) await look()
    expect(said).toEqual([true, false])
    expect(seen.count('DiskFreed')).toBe(1)
    stop()
    expect(clock.armedCount).toBe(0)
  })
})
