import { errorText } from '../kernel/errors.ts'
import { forgetEndedCrawls } from './ended-crawls.ts'
import { OpenCrawlRounds } from './open-tasks.ts'
import type { Runtime } from './runtime.ts'
import { deleteFinished } from './urls-retention.ts'

const EVERY_MS = 10 * 60_000

/**
 * Deletes what is finished and old, again and again until the returned function is called: tasks on topics, crawls in the state store, and what
 * that counts as open though nothing of it is left.
 */
export function startRetention(runtime: Runtime): () => Promise<void> {
  const { clock, observer } = runtime
  const openCrawls = new OpenCrawlRounds(runtime)
  const stopped = new AbortController()
  const rounds = [
    { what: 'tasks', round: deleteFinished },
    { what: 'crawls', round: forgetEndedCrawls },
    { what: 'open tasks', round: () => openCrawls.round(stopped.signal) },
  ]
  let disarm = (): void => undefined
  let working: Promise<unknown> = Promise.resolve()
  const work = ({ what, round }: (typeof rounds)[number]): Promise<void> =>
    round(runtime).catch((error: unknown) => {
      if (!stopped.signal.aborted) observer.emit('RetentionFailed', { what, error: errorText(error) })
    })
  const schedule = (): void => {
    disarm = clock.timer(
      EVERY_MS,
      () => {
        // One at a time, however long it takes.
        working = Promise.all(rounds.map(work)).then(() => {
          if (!stopped.signal.aborted) schedule()
        })
      },
      { unref: true },
    )
  }
  schedule()
  return async () => {
    stopped.abort()
    disarm()
    await working
  }
}
