import { describe, expect, it } from 'vitest'
import {
  exportOffsets,
  notBefore,
  type PartitionFacts,
  type PlanRequest,
  parseOffsetsFile,
  planReplay,
  type ReplayStart,
} from '../../../../src/control/trials/replay-plan.ts'
import { isMillraceError } from '../../../../src/kernel/errors.ts'

const facts: PartitionFacts[] = [
  { partition: 0, low: 10n, end: 100n, committed: 90n },
  { partition: 1, low: 0n, end: 50n, committed: 50n },
  { partition: 2, low: 0n, end: 0n, committed: undefined },
]
const request: PlanRequest = {
  topic: 'html',
  asked: 'all stored pages',
  start: { kind: 'earliest' },
  until: undefined,
  partitions: undefined,
  untilCommitted: false,
}

const ranges = (plan: ReturnType<typeof planReplay>): string[] =>
  plan.partitions.map(({ partition, from, until }) => `${partition}:${from}-${until}`)

describe('the plan of a replay', () => {
  it('covers everything that is there, and leaves out empty partitions', () => {
    const plan = planReplay(request, facts)
    expect(ranges(plan)).toEqual(['0:10-100', '1:0-50'])
    expect(plan.offsets).toBe(140n)
    expect(plan.gone).toBe(0n)
  })

  it('ends in place where the group stands', () => {
    expect(ranges(planReplay({ ...request, untilCommitted: true }, facts))).toEqual(['0:10-90', '1:0-50'])
  })

  it('clamps an offset below the log and says how many pages are gone', () => {
    const plan = planReplay({ ...request, start: { kind: 'offset', offset: 3n }, partitions: [0] }, facts)
    expect(ranges(plan)).toEqual(['0:10-100'])
    expect(plan.partitions[0]).toMatchObject({ gone: 7n, note: '7 older offsets are gone by retention, 90 are left' })
  })

  it('speaks of one page as of one', () => {
    const one = { partition: 0, low: 1n, end: 2n, committed: 2n }
    expect(planReplay({ ...request, start: { kind: 'offset', offset: 0n } }, [one]).partitions[0]?.note).toBe(
      '1 older offset is gone by retention, 1 is left',
    )
    expect(planReplay(request, [{ ...one, end: 1n }]).nothing).toBe(
      'asked for all stored pages; of 1 offset that partition 0 of html has held 1 is gone by retention and none is left',
    )
  })

  it('shifts from what the group has committed', () => {
    const some = facts.slice(0, 2)
    expect(ranges(planReplay({ ...request, start: { kind: 'shift', by: -20n }, untilCommitted: true }, some))).toEqual([
      '0:70-90',
      '1:30-50',
    ])
    expect(ranges(planReplay({ ...request, start: { kind: 'shift', by: 5n }, untilCommitted: true }, some))).toEqual(['1:50-50'])
  })

  it('refuses to shift a group that has committed nothing', () => {
    const uncommitted = facts.map((fact) => ({ ...fact, committed: undefined }))
    expect(() => planReplay({ ...request, start: { kind: 'shift', by: -1n } }, uncommitted)).toThrow(/nothing to shift from/)
  })

  it('shifts although a partition has never held a page, which has nothing to shift', () => {
    const shift = { ...request, start: { kind: 'shift', by: -20n } as const, untilCommitted: true }
    expect(ranges(planReplay(shift, facts))).toEqual(['0:70-90', '1:30-50'])
    expect(planReplay(shift, facts.slice(2))).toMatchObject({ partitions: [], nothing: expect.stringContaining('has held no page yet') })
  })

  it('never plans backwards when the start lies behind the end', () => {
    const plan = planReplay({ ...request, start: { kind: 'offsets', offsets: new Map([[0, 500n]]), what: 'time' } }, facts)
    expect(plan.offsets).toBe(0n)
  })

  it('says why there is nothing: what was asked for, what is gone, what is left', () => {
    const emptied = { partition: 0, low: 40n, end: 40n, committed: 40n }
    expect(planReplay(request, [emptied])).toMatchObject({
      offsets: 0n,
      partitions: [{ partition: 0, offsets: 0n, note: 'all its 40 offsets are gone by retention' }],
      nothing: 'asked for all stored pages; of 40 offsets that partition 0 of html has held 40 are gone by retention and none is left',
    })
    const since: ReplayStart = { kind: 'offsets', offsets: new Map([[0, 40n]]), what: 'T', at: 5 }
    expect(planReplay({ ...request, start: since }, [emptied]).partitions[0]?.note).toBe('all its 40 offsets are gone by retention')
    // What came after the range is still there.
    const later = [emptied, { partition: 1, low: 30n, end: 35n, committed: 30n }]
    expect(planReplay({ ...request, untilCommitted: true }, later).nothing).toBe(
      'asked for all stored pages; of 75 offsets that html has held 70 are gone by retention and 5 are left, 5 not read by the group yet, and none of them is in that range',
    )
    expect(planReplay({ ...request, until: new Map([[1, 30n]]) }, later).nothing).toBe(
      'asked for all stored pages; of 75 offsets that html has held 70 are gone by retention and 5 are left, and none of them is in that range',
    )
    expect(planReplay(request, [{ partition: 0, low: 0n, end: 0n, committed: undefined }]).nothing).toBe(
      'asked for all stored pages; partition 0 of html has held no page yet',
    )
    expect(planReplay(request, facts)).not.toHaveProperty('nothing')
  })

  it('says so where no page of the range was fetched as late as asked for', () => {
    const plan = planReplay({ ...request, partitions: [1] }, facts)
    expect(notBefore(plan, new Map([[1, 50n]]), 'A')).toMatchObject({
      offsets: 0n,
      nothing: 'asked for A; of 50 offsets in that range none holds a page that was fetched as late',
    })
    expect(notBefore(plan, new Map([[1, 20n]]), 'A')).not.toHaveProperty('nothing')
  })

  it('refuses a partition that does not exist', () => {
    try {
      planReplay({ ...request, partitions: [7] }, facts)
      expect.unreachable()
    } catch (error) {
      expect(isMillraceError(error, 'REPLAY_REFUSED')).toBe(true)
    }
  })

  it('says of partitions that an offset lies behind their end, and refuses one behind the end of all', () => {
    const plan = planReplay({ ...request, start: { kind: 'offset', offset: 70n } }, facts)
    expect(plan.partitions.map(({ partition, offsets, note }) => [partition, offsets, note])).toEqual([
      [0, 30n, undefined],
      [1, 0n, 'offset 70 lies behind the end 50'],
      [2, 0n, 'offset 70 lies behind the end 0'],
    ])
    expect(() => planReplay({ ...request, start: { kind: 'offset', offset: 101n } }, facts)).toThrow(
      '--to-offset: 101 lies behind the end of every partition; the longest ends at 100',
    )
    expect(() => planReplay({ ...request, start: { kind: 'offset', offset: 60n }, partitions: [1] }, facts)).toThrow(
      'the longest ends at 50',
    )
  })

  it('refuses a file of offsets that names a partition which is not there', () => {
    const offsets = new Map([
      [0, 20n],
      [9, 1n],
    ])
    expect(() => planReplay({ ...request, start: { kind: 'offsets', offsets, what: 'a.csv' } }, facts)).toThrow(
      'has no partition 9; it has 3',
    )
  })

  it('reads back what it exports, and what Kafka writes with the group in front', () => {
    const plan = planReplay(request, facts)
    expect(exportOffsets(plan)).toEqual(['html,0,10', 'html,1,0'])
    expect(parseOffsetsFile(exportOffsets(plan).join('\n'), 'f', 'html')).toEqual(
      new Map([
        [0, 10n],
        [1, 0n],
      ]),
    )
    expect(parseOffsetsFile('"scrape.extract","html",1,7\n', 'f', 'html')).toEqual(new Map([[1, 7n]]))
    expect(() => parseOffsetsFile('html,1\n', 'f', 'html')).toThrow(/f:1/)
    expect(() => parseOffsetsFile('other,1,1\n', 'f', 'html')).toThrow(/no line names topic html/)
  })
})
