import { MillraceError } from '../../kernel/errors.ts'
import type { Runtime } from '../runtime/runtime.ts'

/**
 * Aborted by the second signal, or when what the first one has begun takes longer than it may: stopping the stages, reading the last
 * records and adding up are one thing to whoever waits for it.
 */
export function cutOff(
  runtime: Pick<Runtime, 'clock' | 'onClose'>,
  {
    draining,
    aborting,
    drainTimeoutMs,
  }: { readonly draining: AbortSignal; readonly aborting: AbortSignal; readonly drainTimeoutMs: number },
): AbortSignal {
  const late = new AbortController()
  let disarm = (): void => undefined
  const arm = (): void => {
    disarm = runtime.clock.timer(
      drainTimeoutMs,
      () => late.abort(new MillraceError('ABORTED', `stopping took longer than ${drainTimeoutMs} ms`)),
      { unref: true },
    )
  }
  if (draining.aborted) arm()
  else draining.addEventListener('abort', arm, { once: true })
  runtime.onClose('end of a drain', () => {
    draining.removeEventListener('abort', arm)
    disarm()
  })
  return AbortSignal.any([aborting, late.signal])
}
