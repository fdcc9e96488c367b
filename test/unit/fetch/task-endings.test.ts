import { expect, it } from 'vitest'
import { TaskEndings, type TaskEndingsOptions } from '../../../src/fetch/task-endings.ts'
import type { PolitenessKey } from '../../../src/kernel/brand.ts'
import { type ErrorCode, MillraceError } from '../../../src/kernel/errors.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { recordingObserver } from '../../support/kafka-fixture.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const MESSAGE = { topic: 'p.urls', partition: 2, offset: 7n, headers: {} }
const ENTRY = { message: MESSAGE } as never
const SLOTS = { reason: 'site-full', clock: 'c' as PolitenessKey, localWaitMs: 0, intervalMs: 1 } as const

/** Shape: what was written for a task whose copy the delay topic refuses so. */
async function writtenWhere(code: ErrorCode): Promise<string[]> {
  const written: string[] = []
  const endings = new TaskEndings({
    publisher: { delayMessage: () => 'copy' },
    outcomes: { message: (_: unknown, { kind, reason }: { kind: string; reason: string }) => `${kind} ${reason}` },
    deadLetters: { message: (_: unknown, about: { code: string }) => `dead letter ${about.code}` },
    settler: {
      settle: async ({ messages }: { messages: readonly string[] }) => {
        if (messages.includes('copy')) throw new MillraceError(code, 'refused')
        written.push(...messages)
      },
    },
    state: { spillSlot: async () => 1_000 },
    gate: { run: (step: () => unknown) => step() },
    clock: new ManualClock(),
    observer: silentObserver,
    budgetIdsOf: () => [],
    liftedAtOf: () => 0,
  } as unknown as TaskEndingsOptions)
  const queued = { entry: ENTRY, task: { url: 'http://shop.example/', canonicalUrl: '', redirects: [] } } as never
  await endings.spilled([queued], SLOTS, () => undefined)
  return written
}

it.each([
  ['KAFKA_MESSAGE_TOO_LARGE', 'message-too-large'],
  ['KAFKA_MESSAGE_REFUSED', 'internal'],
] as const)(
  'a task whose copy a delay topic does not take (%s) ends FAILED with a dead letter, and the worker goes on',
  async (code, reason) => {
    expect((await writtenWhere(code)).toSorted()).toEqual([`FAILED ${reason}`, `dead letter ${code}`].toSorted())
  },
)

it('a broker that is away is no end of a task', async () => {
  await expect(writtenWhere('KAFKA_UNREACHABLE')).rejects.toMatchObject({ code: 'KAFKA_UNREACHABLE' })
})

/** Shape: what was written for an entry whose proper end failed, where the outcome of its task fails as well. */
async function writtenAtLast(again: unknown): Promise<string[]> {
  const written: string[] = []
  const endings = new TaskEndings({
    outcomes: { message: () => 'outcome' },
    deadLetters: { message: (_: unknown, { code, message }: { code: string; message: string }) => `dead letter ${code} ${message}` },
    settler: { settle: async ({ messages }: { messages: readonly string[] }) => void written.push(...messages) },
    clock: new ManualClock(),
    observer: silentObserver,
    budgetIdsOf: () => {
      throw again
    },
  } as unknown as TaskEndingsOptions)
  await endings.unwritable(ENTRY, { url: 'nowhere', canonicalUrl: '', redirects: [] } as never, new RangeError('first'))
  return written
}

it.each([
  ['a defect', new TypeError('Invalid URL')],
  ['a value that fits no message', new MillraceError('MESSAGE_INVALID', 'no')],
  ['a known defect', new MillraceError('INTERNAL', 'no')],
])('where the shortest outcome fails as well (%s) the original is kept, and the worker goes on', async (_, again) => {
  expect(await writtenAtLast(again)).toEqual(['dead letter INTERNAL first'])
})

it.each(['ABORTED', 'STATE_BROKEN', 'KAFKA_REQUEST_FAILED'] as const)('what is no fault of the task (%s) is no end of it', async (code) => {
  await expect(writtenAtLast(new MillraceError(code, 'no'))).rejects.toMatchObject({ code })
})

it.each([
  ['its last attempt', 2, null],
  ['an attempt whose next one would come after it expires', 1, 10],
] as const)('what came of a page that was cut is kept after %s', async (_, attempt, expiresAt) => {
  const kept: string[] = []
  const endings = new TaskEndings({
    retry: { maxAttempts: 2, firstDelayMs: 1_000, maxDelayMs: 1_000 },
    random: () => 0.5,
    clock: new ManualClock(),
  } as unknown as TaskEndingsOptions)
  const task = { attempt, expiresAt, redirects: [] } as never
  const failure = { code: 'FETCH_FAILED', message: 'cut' } as const
  const keep = async (): Promise<void> => void kept.push('page')
  await endings.retryOrFail(ENTRY, task, { reason: 'truncated', failure, keep })
  expect(kept).toEqual(['page'])
})

it('a dead letter is told with the place of its message and its URL', async () => {
  const { observer, events } = recordingObserver()
  const endings = new TaskEndings({
    outcomes: { message: () => 'outcome' },
    deadLetters: { message: () => 'dead letter' },
    settler: { settle: async () => undefined },
    clock: new ManualClock(),
    observer,
    budgetIdsOf: () => [],
  } as unknown as TaskEndingsOptions)
  const failure = { code: 'FETCH_FAILED', message: 'the connection was reset' } as const
  await endings.final(ENTRY, { url: 'http://shop.example/' } as never, { kind: 'FAILED', reason: 'reset', at: 0 }, { failure })
  expect(events.filter(({ event }) => event === 'DeadLetterWritten').map(({ fields }) => fields)).toEqual([
    { stage: 'fetch', code: 'FETCH_FAILED', topic: 'p.urls', partition: 2, offset: 7n, url: 'http://shop.example/', text: failure.message },
  ])
})
