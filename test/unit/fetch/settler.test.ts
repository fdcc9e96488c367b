import { describe, expect, it } from 'vitest'
import { Settler } from '../../../src/fetch/settler.ts'
import { StoreGate } from '../../../src/fetch/store-gate.ts'
import { DEFAULT_MAX_BATCH_BYTES } from '../../../src/kafka/topic-definitions.ts'
import type { WindowEntry } from '../../../src/kafka/window-entry.ts'
import { MillraceError } from '../../../src/kernel/errors.ts'
import { recordingObserver } from '../../support/kafka-fixture.ts'
import { ManualClock } from '../../support/manual-clock.ts'

function setup(options: { storeFailures?: number; sendError?: Error; taken?: Promise<void> } = {}) {
  const steps: string[] = []
  const clock = new ManualClock()
  const seen = recordingObserver()
  const { signal } = new AbortController()
  let failures = options.storeFailures ?? 0
  const step = async (name: string): Promise<void> => {
    if (failures > 0) {
      failures -= 1
      throw new MillraceError('STATE_UNAVAILABLE', 'away')
    }
    steps.push(name)
  }
  const gate = new StoreGate({ clock, observer: seen.observer, signal, random: () => 1 })
  const settler = new Settler({
    producer: {
      async send(messages) {
        if (options.sendError !== undefined) throw options.sendError
        await options.taken
        steps.push(`send ${messages.map(({ topic }) => topic).join('+')}`)
      },
    },
    state: {
      finalise: (crawlId, taskIds) => step(`finalise ${crawlId} ${taskIds.join('+')}`),
      markFinished: (attempts, ttlMs) =>
        step(`finished ${attempts.map(({ taskId, final }) => `${taskId}${final ? '!' : ''}`).join('+')} ${ttlMs}`),
      keepPlaces: (taskId, ids) => step(`keep ${taskId} ${ids.join('+')}`),
      unreserve: (taskId, ids) => step(`unreserve ${taskId} ${ids.join('+')}`),
    },
    gate,
    finishedTtlMs: 7,
    signal,
    clock,
  })
  const entry = (name: string) => ({ complete: () => steps.push(`complete ${name}`) }) as unknown as WindowEntry
  return { steps, clock, seen, gate, settler, entry }
}

const message = (topic: string) => ({ topic, partition: 0, key: null, value: null })
const task = (taskId: string, crawlId: string | null = 'c') => ({ taskId, attempt: 1, crawlId })

describe('the settler', () => {
  it('writes, then tells the store that the task is final, then that it is finished, then completes', async () => {
    const { settler, steps, entry } = setup()
    await settler.settle({
      entry: entry('a'),
      messages: [message('html'), message('outcomes')],
      finished: { task: task('t'), final: true },
      places: { budgetIds: ['b'], areKept: false },
    })
    expect(steps).toEqual(['send html+outcomes', 'unreserve t b', 'finalise c t', 'finished t! 7', 'complete a'])
  })

  it('keeps the places of a page before the task is final, so that nobody waits for them in vain', async () => {
    const { settler, steps, entry } = setup()
    const finished = { task: task('t'), final: true }
    await settler.settle({ entry: entry('a'), messages: [message('html')], finished, places: { budgetIds: ['b', 'd'], areKept: true } })
    expect(steps).toEqual(['send html', 'keep t b+d', 'finalise c t', 'finished t! 7', 'complete a'])
  })

  it('writes first by itself what the broker may refuse though we do not, so that no outcome tells of what is not there', async () => {
    const { settler, steps, entry } = setup()
    const large = { ...message('html'), value: Buffer.alloc(DEFAULT_MAX_BATCH_BYTES) }
    await settler.settle({ entry: entry('a'), messages: [message('dead-letters'), large, message('outcomes')] })
    expect(steps).toEqual(['send html', 'send dead-letters+outcomes', 'complete a'])
  })

  it('does not call a retry final, nor tell of crawls that there are none of', async () => {
    const { settler, steps, entry } = setup()
    await settler.settle({ entry: entry('a'), messages: [], finished: { task: task('t'), final: false } })
    await settler.settle({ entry: entry('b'), messages: [], finished: { task: task('u', null), final: true } })
    expect(steps).toEqual(['finished t 7', 'complete a', 'finished u! 7', 'complete b'])
  })

  it('knows for how long Kafka has not taken what an entry ended with', async () => {
    let take = (): void => undefined
    const taken = new Promise<void>((resolve) => {
      take = resolve
    })
    const { settler, clock, entry } = setup({ taken })
    const [first, second] = [entry('a'), entry('b')]
    const settling = [settler.settle({ entry: first, messages: [message('html')] })]
    await clock.advance(3_000)
    settling.push(settler.settle({ entry: second, messages: [message('html')] }))
    await clock.advance(2_000)
    expect([settler.unwrittenMs(), settler.unwrittenMs(first), settler.unwrittenMs(second)]).toEqual([5_000, 5_000, 2_000])
    take()
    await Promise.all(settling)
    expect(settler.unwrittenMs()).toBeUndefined()
  })

  it('gathers what ends together in one call', async () => {
    const { settler, steps, entry } = setup()
    await Promise.all(
      ['a', 'b', 'c', 'd'].map((id) => settler.settle({ entry: entry(id), messages: [], finished: { task: task(id), final: true } })),
    )
    expect(steps.filter((step) => step.startsWith('finished')).length).toBeLessThanOrEqual(2)
    expect(steps.filter((step) => step.startsWith('complete'))).toHaveLength(4)
  })

  it('completes nothing that was not acknowledged', async () => {
    const { settler, steps, entry } = setup({ sendError: new MillraceError('KAFKA_MESSAGE_TOO_LARGE', 'too large') })
    await expect(settler.settle({ entry: entry('a'), messages: [message('html')] })).rejects.toMatchObject({
      code: 'KAFKA_MESSAGE_TOO_LARGE',
    })
    expect(steps).toEqual([])
  })

  it('waits while the store is away, says so once, and goes on by itself', async () => {
    const { settler, steps, entry, clock, seen, gate } = setup({ storeFailures: 3 })
    const done = settler.settle({ entry: entry('a'), messages: [], finished: { task: task('t', null), final: true } })
    await clock.advance(0)
    expect(gate.isAway).toBe(true)
    expect(steps).toEqual([])
    await clock.advance(2_000)
    await done
    expect(steps).toEqual(['finished t! 7', 'complete a'])
    expect(gate.isAway).toBe(false)
    expect([seen.count('StorePaused'), seen.count('StoreResumed')]).toEqual([1, 1])
  })
})
