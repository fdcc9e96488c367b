import { finishedTtlMs } from '../../fetch/finished-ttl.ts'
import type { Runtime } from '../runtime/runtime.ts'

/** So many at a time, so that a store which has thousands to forget is not held up. */
const AT_ONCE = 50

/**
 * One round: drops what the state store keeps of crawls that ended longer ago than `crawl.keepEnded` (the URLs they have seen, their tasks,
 * their page budgets). What became of their URLs is on the topics, for as long as those keep it.
 *
 * No sooner than the notes of its finished tasks lapse: links of a crawl of the same name have the same ids, and would be taken for repeats
 * of those, without a request and without an end. Errors: the signal's reason; those of the store.
 */
export async function forgetEndedCrawls(runtime: Pick<Runtime, 'config' | 'observer' | 'state'>, signal?: AbortSignal): Promise<void> {
  const keptMs = runtime.config['crawl.keepEnded']
  if (keptMs === 0) return
  const quietMs = Math.max(keptMs, finishedTtlMs(runtime.config['retry.maxDelay']))
  const state = await runtime.state()
  let isMore = true
  while (isMore) {
    signal?.throwIfAborted()
    const gone = await state.forgetEnded(quietMs, AT_ONCE)
    if (gone.length > 0) runtime.observer.emit('CrawlsForgotten', { count: gone.length })
    isMore = gone.length === AT_ONCE
  }
}

/**
 * Whether a crawl of the name goes on, as the state store knows one. What ended so long ago is forgotten before it is asked: the rounds of
 * a worker would come after the first URLs of the new one, and take both for one crawl that has not ended.
 */
export async function goesOn(runtime: Pick<Runtime, 'config' | 'observer' | 'state'>, crawlId: string): Promise<boolean> {
  await forgetEndedCrawls(runtime)
  const state = await runtime.state()
  return (await state.crawlCounts(crawlId)).accepted > 0
}
