import { AWAY_BUDGET_MS } from '../../kafka/consumer-failure.ts'
import { abortedBy, unlessAborted } from '../../kernel/abort.ts'
import { AwakeTime } from '../../kernel/awake-time.ts'
import { lookUnlessAway } from '../runtime/look-unless-away.ts'
import type { Runtime } from '../runtime/runtime.ts'

const TRY_EVERY_MS = 1_000

/**
 * Work that reads what is left when no stage works any more, so that nobody else waits for brokers that are away: it is begun anew until
 * they are back, for as long as a member of a group would wait for them. Errors: the signal's reason, at once; those of the work; why they
 * do not come back.
 */
export async function whenBack<T>(
  runtime: Pick<Runtime, 'clock' | 'observer' | 'failed' | 'consumerSettings'>,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const { clock, consumerSettings } = runtime
  const over = AbortSignal.any([signal, abortedBy(runtime.failed)])
  const { awayBudgetMs = AWAY_BUDGET_MS } = consumerSettings
  let away: AwakeTime | undefined
  let reason: unknown
  const look = async (): Promise<{ readonly value: T }> => ({ value: await work() })
  const onAway = (error: unknown): void => {
    away ??= new AwakeTime(clock)
    reason = error
  }
  try {
    for (;;) {
      const done = await unlessAborted(over, () => lookUnlessAway(runtime, look, onAway))
      if (done !== undefined) return done.value
      if (away !== undefined && away.ms() > awayBudgetMs) throw reason
      await clock.sleep(TRY_EVERY_MS, over)
    }
  } finally {
    away?.stop()
  }
}
