import { expect, it } from 'vitest'
import { TaskEndings, type TaskEndingsOptions } from '../../../src/fetch/task-endings.ts'
import type { PolitenessKey } from '../../../src/kernel/brand.ts'
import { type ErrorCode, MillraceError } from '../../../src/kernel/errors.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { ManualClock } from '../../support/manual-clock.ts'

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
  const queued = { entry: { message: {} }, task: { url: 'http://shop.example/', redirects: [] } } as never
  await endings.spilled([queued], { reason: 'site-full', clock: 'c' as PolitenessKey, localWaitMs: 0, intervalMs: 1 })
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
  await expect(writtenWhere('KAFKA_SEND_FAILED')).rejects.toMatchObject({ code: 'KAFKA_SEND_FAILED' })
})
