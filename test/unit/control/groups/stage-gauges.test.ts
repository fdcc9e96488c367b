import { describe, expect, it } from 'vitest'
import { dependencyGauges, fetchGauges, lagGauges } from '../../../../src/control/groups/stage-gauges.ts'
import type { KafkaAdmin, PartitionLag } from '../../../../src/kafka/admin.ts'
import type { GaugeReading } from '../../../../src/kernel/gauges.ts'
import { recordingObserver } from '../../../support/kafka-fixture.ts'
import { ManualClock } from '../../../support/manual-clock.ts'

const none: PartitionLag = { topic: 't', partition: 0, committed: 7n, metadata: '', low: 0n, end: 7n, lag: 0n }

/** A gauge of lag whose looks at the broker end when the test says so. */
function gauge(partitions: Readonly<Record<string, number>> = { t: 1 }) {
  const clock = new ManualClock()
  const { observer, events } = recordingObserver()
  const looks: { readonly end: (lags: PartitionLag[]) => void; readonly fail: (error: Error) => void }[] = []
  const lag = (): Promise<PartitionLag[]> => new Promise((end, fail) => void looks.push({ end, fail }))
  const admin = { lag, partitions: async (topic: string) => Array.from({ length: partitions[topic] ?? 0 }, (_, index) => index) }
  const source = lagGauges({ admin: admin as unknown as KafkaAdmin, clock, observer }, 'g', Object.keys(partitions))
  /** What a scrape is given, which waits as long as this. */
  const scrape = async (waitsMs: number): Promise<readonly GaugeReading[]> => {
    const reading = source()
    await clock.advance(waitsMs)
    return reading
  }
  return { clock, events, looks, source, scrape }
}

describe('the gauges of what is waited for', () => {
  it.each(['registry', 'blobs'] as const)('are 1 while %s is away, of fetch and of any process, and 0 else', async (away) => {
    const view = { waiting: 0, inFlight: 0, sites: 0, runnable: 0, windowMessages: 0, siteWaits: {}, proxiesOut: [], unwrittenMs: 0 }
    const fetch = await fetchGauges({ view: () => ({ ...view, stalledBy: away }) })()
    const process = await dependencyGauges({ waitsFor: () => [away] })()
    const standing = [...fetch, ...process].filter(({ labels, value }) => Object.keys(labels).length > 0 && value === 1)
    expect(standing.map(({ name, labels }) => [name, labels])).toEqual([
      ['fetch_stalled', { by: away }],
      ['dependency_away', { dependency: away }],
    ])
  })
})

describe('the gauges of lag', () => {
  it('hold up a scrape for a second, while the broker does not answer, and one look goes on beside the scrapes', async () => {
    const { looks, scrape } = gauge()
    expect(await scrape(1_000)).toEqual([])
    expect(await scrape(1_000)).toEqual([])
    expect(looks).toHaveLength(1)
  })

  it('show what the last look saw until the next one has ended, and nothing where that fails, which the log tells', async () => {
    const { clock, events, looks, source, scrape } = gauge()
    const first = source()
    looks[0]?.end([none])
    expect((await first).map(({ name, value }) => [name, value])).toEqual([
      ['group_lag_messages', 0],
      ['group_oldest_seconds', 0],
    ])
    await clock.advance(10_001)
    expect(await scrape(1_000)).toHaveLength(2)
    const third = source()
    looks[1]?.fail(new Error('no answer'))
    expect(await third).toEqual([])
    expect(events).toEqual([{ event: 'LagUnknown', fields: { group: 'g', error: 'no answer' } }])
    expect([looks.length, clock.armedCount]).toEqual([2, 0])
  })

  it('leave out a topic of which a partition is offline, and the age with it: less would look like work that is done', async () => {
    const { looks, source } = gauge({ t: 1, half: 2, gone: 1 })
    const reading = source()
    looks[0]?.end([none, { ...none, topic: 'half' }])
    expect((await reading).map(({ name, labels }) => [name, labels])).toEqual([['group_lag_messages', { group: 'g', topic: 't' }]])
  })
})
