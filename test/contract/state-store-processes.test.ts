import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { PolitenessKey } from '../../src/kernel/brand.ts'
import { ownProcess } from '../../src/machine/process-identity.ts'
import type { LimiterAnswer, LimiterKey, LimiterRequest } from '../../src/state/state-store.ts'
import { eventually } from '../support/eventually.ts'
import { StateChild } from '../support/state-processes.ts'
import { StoreBench } from '../support/state-stores.ts'

const KEY: LimiterKey = { key: 'a.example' as PolitenessKey, ratePerSecond: 1, burst: 100, concurrency: 5, crawlDelayMs: 0 }
const REQUEST = { keys: [KEY], leaseMs: 60_000, countsForRate: true }
const MINE: LimiterRequest = { ...REQUEST, owner: ownProcess('parent') }

describe('StateStore on LMDB, shared by processes of one machine', () => {
  let bench: StoreBench
  let children: StateChild[]

  const child = async (): Promise<StateChild> => {
    const started = await StateChild.start(bench.folder, bench.clusterId)
    children.push(started)
    return started
  }

  beforeEach(() => {
    bench = new StoreBench()
    children = []
  })
  afterEach(async () => {
    await Promise.all(children.map((each) => each.kill()))
    await bench.end()
  })

  it('keeps the concurrency of a key and the owner of a claim over all of them', async () => {
    const store = await bench.lmdb()
    const [first, second] = await Promise.all([child(), child()])
    const askers = [
      () => first.tell<LimiterAnswer>({ do: 'acquire', request: REQUEST }),
      () => second.tell<LimiterAnswer>({ do: 'acquire', request: REQUEST }),
      () => store.acquire(MINE),
    ]
    const answers = await Promise.all(Array.from({ length: 30 }, (_, index) => askers[index % 3]!()))
    expect(answers.filter((answer) => answer.kind === 'lease')).toHaveLength(5)

    const urls = Array.from({ length: 60 }, (_, index) => `https://a.example/${index}`)
    const verdicts = await Promise.all([
      first.tell<string[]>({ do: 'claim', urls, claimant: '1' }),
      second.tell<string[]>({ do: 'claim', urls, claimant: '2' }),
      store.claim(urls.map((canonicalUrl) => ({ crawlId: 'c', canonicalUrl, round: 0, claimant: '3' }))),
    ])
    for (let index = 0; index < urls.length; index += 1) {
      expect(verdicts.map((list) => list[index]).filter((verdict) => verdict === 'new')).toHaveLength(1)
    }
  })

  it('ends the leases of a process that was killed as soon as its places are wanted', async () => {
    const store = await bench.lmdb()
    const doomed = await child()
    for (let index = 0; index < 5; index += 1) await doomed.tell({ do: 'acquire', request: REQUEST })
    expect(await store.acquire(MINE)).toMatchObject({ kind: 'wait', reason: 'concurrency' })
    await doomed.kill()
    expect(await store.acquire(MINE)).toMatchObject({ kind: 'lease' })
    expect((await store.limiterState(KEY.key)).leases).toBe(1)
  })

  it('grows while others use it, and each sees at once what the others wrote', async () => {
    const store = await bench.lmdb()
    const [first, second] = await Promise.all([child(), child()])
    const text = 'y'.repeat(200_000)
    const fills = Promise.all([first, second].map((each) => each.tell({ do: 'fill', count: 100, bytes: 150_000 })))
    for (let index = 0; index < 100; index += 1) {
      await store.writeValue(`mine-${index}`, text)
      expect(await store.readValue(`mine-${index}`)).toBe(text)
    }
    await fills
    expect((await store.readValue('child-99'))?.length).toBe(150_000)
    expect((await store.health()).sizeBytes).toBeGreaterThan(30_000_000)
  })

  it('loses no step when processes open and close the file in the middle of the commits of others', async () => {
    const store = await bench.lmdb()
    const workers = await Promise.all([child(), child(), child(), child()])
    const work = [
      { count: 6_000, opens: 1 },
      { count: 6_000, opens: 1 },
      { count: 10, opens: 300 },
      { count: 10, opens: 300 },
    ]
    await Promise.all(work.map((each, index) => workers[index]?.tell({ do: 'accept', claimant: String(index), ...each })))
    expect(await store.crawlCounts('c')).toEqual({ accepted: 18_000, final: 0 })
  })

  it('holds all that was acknowledged, and adds up, after a kill -9 in the middle of writes', async () => {
    for (let round = 0; round < 2; round += 1) {
      const writer = await child()
      writer.tell({ do: 'write', claimant: `w${round}` }).catch(() => undefined)
      await eventually(() => writer.acknowledged >= 30 + 17 * round, { what: 'the child writes' })
      await writer.kill()
      const store = await bench.lmdb()
      const before = await store.crawlCounts('c')
      expect(before.accepted).toBeGreaterThan(before.final)
      // A task that is there is not counted again.
      const acknowledged = Array.from({ length: writer.acknowledged }, (_, index) => `w${round}-${index}-15`)
      await store.accept('c', acknowledged)
      expect(await store.crawlCounts('c')).toEqual(before)
      await store.finalise('c', acknowledged)
      expect(await store.crawlCounts('c')).toEqual({ accepted: before.accepted, final: before.final + writer.acknowledged })
      await store.close()
    }
  })
})
