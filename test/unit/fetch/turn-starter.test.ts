import { describe, expect, it } from 'vitest'
import { Scheduler } from '../../../src/fetch/scheduler.ts'
import type { SiteTask } from '../../../src/fetch/site-task.ts'
import { TurnStarter } from '../../../src/fetch/turn-starter.ts'
import type { PartitionId, PolitenessKey } from '../../../src/kernel/brand.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const site = (key: string): SiteTask => ({
  key: key as PolitenessKey,
  lane: 'normal',
  crawlId: null,
  window: 'urls:0' as PartitionId,
})

function setup() {
  const clock = new ManualClock()
  const scheduler = new Scheduler<SiteTask>({ maxInFlight: 10, maxBytes: 1_000 })
  const gate = { isAway: false }
  const closing = new AbortController()
  const started: string[] = []
  const start = ({ key }: SiteTask): void => void started.push(key)
  const starter = new TurnStarter({ scheduler, gate, start, signal: closing.signal, clock })
  const add = async (key: string): Promise<void> => {
    scheduler.add(site(key), clock.mono())
    starter.soon()
    await told()
  }
  return { clock, scheduler, gate, closing, started, starter, add }
}

/** What was told in this turn of the event loop has been looked at. */
const told = (): Promise<void> => Promise.resolve()

describe('turns', () => {
  it('are given as soon as a task is there, and when its site has slept', async () => {
    const { clock, scheduler, started, add } = setup()
    await add('a')
    scheduler.add(site('b'), 0)
    scheduler.sleep('b' as PolitenessKey, 100, 0)
    await add('c')
    expect(started).toEqual(['a', 'c'])
    await clock.advance(100)
    expect(started).toEqual(['a', 'c', 'b'])
  })

  it('are not given while somebody holds them, nor while the store is away, whichever ends first', async () => {
    for (const first of ['hold', 'store'] as const) {
      const { gate, started, starter, add } = setup()
      starter.hold()
      gate.isAway = true
      await add('a')
      expect(starter.stalledBy).toBe('state-store')
      const ends = {
        hold: () => starter.release(),
        store: () => {
          gate.isAway = false
          starter.resume()
        },
      }
      ends[first]()
      await add('b')
      expect(started).toEqual([])
      expect(starter.stalledBy).toBe(first === 'hold' ? 'state-store' : 'disk')
      ends[first === 'hold' ? 'store' : 'hold']()
      await told()
      expect(started).toEqual(['a', 'b'])
      expect(starter.stalledBy).toBeNull()
    }
  })

  it('are given no more once it is closed, not by a timer that was set either', async () => {
    const { clock, scheduler, started, starter, add } = setup()
    scheduler.add(site('a'), 0)
    scheduler.sleep('a' as PolitenessKey, 100, 0)
    starter.soon()
    await told()
    starter.close()
    await add('b')
    await clock.advance(200)
    expect(started).toEqual([])
  })

  it('are given no more once the requests under way are cut off', async () => {
    const { closing, started, add } = setup()
    closing.abort()
    await add('a')
    expect(started).toEqual([])
  })
})
