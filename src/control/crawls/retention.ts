import { errorText } from '../../kernel/errors.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { forgetEndedCrawls } from './ended-crawls.ts'
import { OpenCrawlRounds } from './open-tasks.ts'
import { deleteFinished } from './urls-retention.ts'

/**
 * The work has begun by then. Soon enough for a process that lives for seconds, as a `run` from a timetable does: it may be all there ever
 * is.
 */
const FIRST_MS = 1_000
const EVERY_MS = 10 * 60_000

/**
 * Deletes what is finished and old, again and again until the returned function is called: tasks on topics, crawls in the state store, and
 * what that counts as open though nothing of it is left. A round that works then ends with the step that it is at; the next one goes on
 * there.
 */
export function startRetention(runtime: Runtime): () => Promise<void> {
  const { clock, observer } = runtime
  const openCrawls = new OpenCrawlRounds(runtime)
  const stopped = new AbortController()
  const rounds = [
    { what: 'tasks', round: () => deleteFinished(runtime, stopped.signal) },
    { what: 'crawls', round: () => forgetEndedCrawls(runtime, stopped.signal) },
    { what: 'open tasks', round: () => openCrawls.round(stopped.signal) },
  ]
  let disarm = (): void => undefined
  let working: Promise<unknown> = Promise.resolve()
  const work = ({ what, round }: (typeof rounds)[number]): Promise<void> =>
    round().catch((error: unknown) => {
      if (!stopped.signal.aborted) observer.emit('RetentionFailed', { what, error: errorText(error) })
    })
  const schedule = (ms: number): void => {
    disarm = clock.timer(
      ms,
      () => {
        // One at a time, however long it takes.
        working = Promise.all(rounds.map(work)).then(() => {
          if (!stopped.signal.aborted) schedule(EVERY_MS)
        })
      },
      { unref: true },
    )
  }
  schedule(FIRST_MS)
  return async () => {
    stopped.abort()
    disarm()
    await working
  }
}
