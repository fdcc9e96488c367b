import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import { cancelReplay, followReplay, replayInPlace, resumeInPlace } from '../../../../src/control/replay/replay-in-place.ts'
import { beginRequest, openRequests } from '../../../../src/control/replay/replay-ledger.ts'
import { listReplays, replayStatus } from '../../../../src/control/replay/replay-status.ts'
import { announce } from '../../../../src/control/runtime/announce.ts'
import { Runtime } from '../../../../src/control/runtime/runtime.ts'
import { applyTopics } from '../../../../src/control/runtime/topics.ts'
import { planOf } from '../../../../src/control/trials/replay-plan.ts'
import { decodeMetadata, encodeMetadata, freshMetadata, NO_TOTALS } from '../../../../src/extract/offset-metadata.ts'
import { rewound } from '../../../../src/extract/replay-step.ts'
import { WindowedConsumer } from '../../../../src/kafka/windowed-consumer.ts'
import { partitionId } from '../../../../src/kernel/brand.ts'
import { type Clock, systemClock } from '../../../../src/kernel/clock.ts'
import { silentObserver } from '../../../../src/kernel/observe.ts'
import { subject } from '../../../../src/message/command.ts'
import type { ReplayRequest } from '../../../../src/message/replay-request.ts'
import { eventually } from '../../../support/eventually.ts'
import { testClient } from '../../../support/kafka.ts'
import { QUICK_MEMBER } from '../../../support/kafka-fixture.ts'
import { brokers, uniqueName } from '../../../support/services.ts'

/** Between two looks at an offset that is pending. */
const LOOK_AGAIN_MS = 50

/** Two commands, each with connections of its own. */
let commands: Runtime[]

beforeEach(async () => {
  const prefix = `${uniqueName('begin')}.`
  const sets = [`brokers=${brokers().join(',')}`, `topics.prefix=${prefix}`, 'topics.partitions.urls=2']
  const { config } = loadConfig({ sets, flags: {}, environment: {} })
  const open = (): Promise<Runtime> => Runtime.open({ config, owner: 'a test', clock: systemClock, observer: silentObserver })
  commands = [await open(), await open()]
  for (const runtime of commands.slice(0, 1)) await applyTopics(runtime)
  // Both have read the log to its end and found nothing: the moment in which either would begin.
  for (const runtime of commands) await openRequests(runtime, 'any')
})
afterEach(async () => {
  for (const runtime of commands) await runtime.close()
})

const ranges = (until: number) => [{ partition: 0, from: '0', until: String(until) }]

function shadow(replayId: string, until: number, topic = 'there'): ReplayRequest {
  const filter = {}
  return {
    replayId,
    groupId: `replay.${replayId}`,
    extractor: 'book',
    extractorVersion: 2,
    filter,
    shadow: { topic, ranges: ranges(until) },
  }
}

describe('two commands that begin a replay at the same moment', () => {
  it('under one id read one range, that of whoever stands first on the log', async () => {
    // The first is at work by its range already when the other, which has found nothing, writes its own.
    const untils: (string | undefined)[] = []
    for (const [index, runtime] of commands.entries()) {
      const { request } = await beginRequest(runtime, shadow('r', 10 + index))
      untils.push(request.shadow?.ranges[0]?.until)
    }
    expect(untils).toEqual(['10', '10'])
    const later = await Promise.all(commands.map((runtime) => listReplays(runtime)))
    expect(later.map((found) => found.map(({ offsets }) => offsets))).toEqual([[10], [10]])
  })

  it('leave it closed where the first was through before the other had found out', async () => {
    const [one, other] = commands as [Runtime, Runtime]
    const { request } = await beginRequest(one, shadow('r', 10))
    await announce(one, { kind: 'close', subject: subject.replay('r'), payload: request })
    expect(await beginRequest(other, shadow('r', 11))).toMatchObject({ isClosed: true })
  })

  it('under one id for other work are told apart: the second is refused, and the first goes on', async () => {
    const settled = await Promise.allSettled(commands.map((runtime, index) => beginRequest(runtime, shadow('r', 10, `topic-${index}`))))
    const refused = settled.filter(({ status }) => status === 'rejected')
    expect(refused).toHaveLength(1)
    expect(refused[0]).toMatchObject({ reason: { code: 'REPLAY_REFUSED' } })
    const first = settled.findIndex(({ status }) => status === 'fulfilled')
    for (const runtime of commands) expect((await listReplays(runtime))[0]).toMatchObject({ state: 'open', shadowTopic: `topic-${first}` })
  })

  it('in place in one group never stand open beside each other', async () => {
    const [one] = commands
    const groupId = one?.groups.extract() ?? ''
    const settled = await Promise.allSettled(
      commands.map((runtime, index) => {
        const asked = { replayId: `r${index}`, groupId, extractor: 'book', extractorVersion: 2, filter: {} }
        return replayInPlace(runtime, asked, planOf(runtime.topics.html, ranges(10)))
      }),
    )
    expect(settled.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(settled.find(({ status }) => status === 'rejected')).toMatchObject({ reason: { code: 'REPLAY_REFUSED' } })
    const stands = `r${settled.findIndex(({ status }) => status === 'fulfilled')}`
    for (const runtime of commands) expect((await openRequests(runtime, groupId)).map(({ replayId }) => replayId)).toEqual([stands])
  })
})

describe('a replay that nobody works on', () => {
  it('goes on afterwards behind what the last worker had under way, though that commits only now', async () => {
    let looks = 0
    const clock: Clock = {
      ...systemClock,
      sleep: (ms, signal) => {
        if (ms === LOOK_AGAIN_MS) looks += 1
        return systemClock.sleep(ms, signal)
      },
    }
    const [{ config }] = commands as [Runtime]
    const runtime = await Runtime.open({ config, owner: 'a test', clock, observer: silentObserver })
    commands.push(runtime)
    const { admin, topics } = runtime
    const groupId = runtime.groups.extract()
    const at = { topic: topics.html, partition: 0 }
    await admin.commitDirect(groupId, [{ ...at, offset: 10n, metadata: encodeMetadata(freshMetadata(10n)) }])
    // Under another id: the fence does not end it.
    const last = testClient().kafka.producer({ transactionalId: uniqueName('last'), maxInFlightRequests: 1 })
    await last.connect()
    const underWay = await last.transaction()
    const moved = { partition: 0, offset: '20', metadata: encodeMetadata(freshMetadata(20n)) }
    await underWay.sendOffsets({ consumerGroupId: groupId, topics: [{ topic: topics.html, partitions: [moved] }] })
    const asked = { replayId: 'behind', groupId, extractor: 'book', extractorVersion: 2, filter: {} }
    const begun = replayInPlace(runtime, asked, planOf(topics.html, ranges(5)))
    // The admin's own patience is one second.
    await eventually(() => looks > 1_500 / LOOK_AGAIN_MS, { what: 'it to have looked for longer' })
    await underWay.commit()
    await last.disconnect()
    expect((await begun).start).toBe('stopped')
    const { metadata } = (await admin.committedOffsets(groupId, [topics.html])).get(partitionId(topics.html, 0)) ?? { metadata: '' }
    expect(decodeMetadata(metadata)?.replay).toMatchObject({ replayId: 'behind', resumeAt: 20n })
  })

  it('says so, and has no time left, however far it came', async () => {
    const [runtime] = commands as [Runtime]
    const { admin, topics } = runtime
    const groupId = runtime.groups.extract()
    const at = { topic: topics.html, partition: 0 }
    await admin.commitDirect(groupId, [{ ...at, offset: 10n, metadata: encodeMetadata(freshMetadata(10n)) }])
    const asked = { replayId: 'left', groupId, extractor: 'book', extractorVersion: 2, filter: {} }
    await replayInPlace(runtime, asked, planOf(topics.html, ranges(10)))
    const metadata = (await admin.committedOffsets(groupId, [topics.html])).get(partitionId(topics.html, 0))?.metadata ?? ''
    const stop = new AbortController()
    const told: unknown[] = []
    let [done, worked] = [0, Promise.resolve()]
    await followReplay(runtime, 'left', {
      until: 'done',
      signal: stop.signal,
      onProgress: ({ members, doneOffsets }, remainingMs) => {
        told.push({ members, remainingMs })
        // What was committed may not be seen at the next look.
        if (doneOffsets < done) return
        if (doneOffsets === 4) return stop.abort()
        done = doneOffsets + 2
        worked = admin.commitDirect(groupId, [{ ...at, offset: BigInt(done), metadata }])
      },
    })
    await worked
    expect(told.length).toBeGreaterThanOrEqual(3)
    expect(told).toEqual(told.map(() => ({ members: 0, remainingMs: undefined })))
  })
})

describe('a stopped group that comes up while a replay of it is begun', () => {
  /** The group has a member from the moment in which this command shuts out whoever is left. */
  async function comingUp(): Promise<{ runtime: Runtime; asked: Omit<ReplayRequest, 'ranges'>; leave: () => Promise<void> }> {
    const [runtime] = commands as [Runtime]
    const { admin, topics, client, groups } = runtime
    const groupId = groups.extract()
    await admin.commitDirect(groupId, [{ topic: topics.html, partition: 0, offset: 10n, metadata: encodeMetadata(freshMetadata(10n)) }])
    const member = new WindowedConsumer({
      client,
      groupId,
      topics: [topics.html],
      onEntries: () => undefined,
      commitIntervalMs: 60_000,
      settings: QUICK_MEMBER,
      observer: silentObserver,
      clock: systemClock,
    })
    const fence = admin.fenceTransactions.bind(admin)
    admin.fenceTransactions = async (ids) => {
      await fence(ids)
      if (member.state === 'idle') await member.start()
    }
    const asked = { replayId: 'r', groupId, extractor: 'book', extractorVersion: 2, filter: {} }
    return { runtime, asked, leave: () => member.stop({ mode: 'abort', timeoutMs: 0 }) }
  }

  it('leaves it to the members, as of one that ran', async () => {
    const { runtime, asked, leave } = await comingUp()
    expect(await replayInPlace(runtime, asked, planOf(runtime.topics.html, ranges(10)))).toMatchObject({ start: 'live' })
    await leave()
    expect(await replayStatus(runtime, 'r')).toMatchObject({ state: 'open', partitions: [{ phase: 'waiting' }] })
  })

  it('leaves it to them too where it is called off in that moment', async () => {
    const { runtime, asked, leave } = await comingUp()
    const { offset, metadata } = rewound(freshMetadata(10n), { replayId: 'r', from: 0n, until: 10n }, 10n, 0n)
    const at = { topic: runtime.topics.html, partition: 0 }
    await runtime.admin.commitDirect(asked.groupId, [{ ...at, offset, metadata: encodeMetadata(metadata) }])
    await beginRequest(runtime, { ...asked, ranges: ranges(10) })
    expect(await cancelReplay(runtime, 'r')).toMatchObject({ state: 'cancelled' })
    await leave()
  })
})

describe('a shadow that was called off', () => {
  it('keeps how far each partition came, though its group is gone', async () => {
    const [runtime] = commands as [Runtime]
    const { admin, topics } = runtime
    await beginRequest(runtime, shadow('off', 10))
    await admin.commitDirect('replay.off', [{ topic: topics.html, partition: 0, offset: 4n, metadata: encodeMetadata(freshMetadata(4n)) }])
    await cancelReplay(runtime, 'off')
    expect((await admin.committedOffsets('replay.off', [topics.html])).get(partitionId(topics.html, 0))?.offset).toBeUndefined()
    expect(await replayStatus(runtime, 'off')).toMatchObject({ doneOffsets: 4, partitions: [{ phase: 'cancelled', position: '4' }] })
  })
})

describe('a replay in place whose command was killed before it had found that another stands first', () => {
  /** `first` has set back the group, which is stopped; of `second` the request is on the log, and nobody takes it back. */
  async function orphan(): Promise<{ runtime: Runtime; asked: Omit<ReplayRequest, 'ranges'>; offsets: () => Promise<unknown> }> {
    const [runtime] = commands as [Runtime]
    const { admin, topics } = runtime
    const groupId = runtime.groups.extract()
    const at = { topic: topics.html, partition: 0 }
    await admin.commitDirect(groupId, [{ ...at, offset: 10n, metadata: encodeMetadata(freshMetadata(10n)) }])
    const asked = { groupId, extractor: 'book', extractorVersion: 2, filter: {} }
    await replayInPlace(runtime, { ...asked, replayId: 'first' }, planOf(topics.html, ranges(10)))
    await beginRequest(runtime, { ...asked, replayId: 'second', ranges: ranges(8) })
    return { runtime, asked: { ...asked, replayId: 'second' }, offsets: () => admin.committedOffsets(groupId, [topics.html]) }
  }

  it('is told to stand behind it', async () => {
    const { runtime } = await orphan()
    expect((await listReplays(runtime)).map(({ replayId, state, behind }) => ({ replayId, state, behind }))).toEqual([
      { replayId: 'first', state: 'open', behind: undefined },
      { replayId: 'second', state: 'open', behind: 'first' },
    ])
  })

  it('is called off, and the first stands as it stood', async () => {
    const { runtime, offsets } = await orphan()
    const before = await offsets()
    expect(await cancelReplay(runtime, 'second')).toMatchObject({ state: 'cancelled' })
    expect(await offsets()).toEqual(before)
    expect((await openRequests(runtime, runtime.groups.extract())).map(({ replayId }) => replayId)).toEqual(['first'])
  })

  it('is refused and taken back where it is asked for again under its id: the offsets are those of the first', async () => {
    const { runtime, asked, offsets } = await orphan()
    const before = await offsets()
    await expect(resumeInPlace(runtime, asked)).rejects.toMatchObject({ code: 'REPLAY_REFUSED' })
    expect(await offsets()).toEqual(before)
    expect(await replayStatus(runtime, 'second')).toMatchObject({ state: 'cancelled' })
    expect(await replayStatus(runtime, 'first')).toMatchObject({ state: 'open', partitions: [{ phase: 'replaying', position: '0' }] })
  })

  it('is gone on with where the first has ended meanwhile, though nobody has closed that', async () => {
    const { runtime, asked } = await orphan()
    const { admin, topics } = runtime
    const replay = { replayId: 'first', phase: 'done', until: 10n, resumeAt: 10n, totals: NO_TOTALS } as const
    const metadata = encodeMetadata({ ...freshMetadata(10n), replay })
    await admin.commitDirect(asked.groupId, [{ topic: topics.html, partition: 0, offset: 10n, metadata }])
    expect(await resumeInPlace(runtime, asked)).toMatchObject({ start: 'stopped' })
    expect(await replayStatus(runtime, 'first')).toMatchObject({ state: 'done' })
    const second = await replayStatus(runtime, 'second')
    expect([second.state, second.behind]).toEqual(['open', undefined])
  })
})
