import { Fifo } from '../kernel/fifo.ts'

/** Tasks without a crawl share one turn. */
export function crawlOf({ crawlId }: { readonly crawlId: string | null }): string {
  return crawlId ?? ''
}

/** What waits for one site in one lane: a FIFO for each crawl, and whose turn it is among them. */
export class CrawlQueues<T extends { readonly crawlId: string | null }> {
  /** In the order of their turns: the one that was served last is behind all others. */
  #queues = new Map<string, Fifo<T>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  /** In the order of their turns. */
  crawls(): IterableIterator<string> {
    return this.#queues.keys()
  }

  has(crawl: string): boolean {
    return this.#queues.has(crawl)
  }

  /** `head`: before all others of its crawl, and its crawl before all others. */
  add(task: T, place: 'head' | 'tail'): void {
    const crawl = crawlOf(task)
    const queue = this.#queues.get(crawl) ?? new Fifo<T>()
    if (place === 'tail') {
      queue.push(task)
      this.#queues.set(crawl, queue)
    } else {
      queue.unshift(task)
      this.#queues.delete(crawl)
      this.#queues = new Map([[crawl, queue], ...this.#queues])
    }
    this.#size += 1
  }

  /** The next task of the crawl, whose turn is over then; of the one whose turn it is where none is named. */
  take(crawl: string | undefined = this.#queues.keys().next().value): T | undefined {
    if (crawl === undefined) return undefined
    const queue = this.#queues.get(crawl)
    const task = queue?.shift()
    if (queue === undefined || task === undefined) return undefined
    this.#queues.delete(crawl)
    if (queue.size > 0) this.#queues.set(crawl, queue)
    this.#size -= 1
    return task
  }

  /** Takes out the last task of a crawl that matches. Cost: O(its tasks). */
  takeLast(crawl: string, matches: (task: T) => boolean): T | undefined {
    const queue = this.#queues.get(crawl)
    const task = queue?.takeLast(matches)
    if (queue === undefined || task === undefined) return undefined
    if (queue.size === 0) this.#queues.delete(crawl)
    this.#size -= 1
    return task
  }

  /** Takes out what matches, crawl by crawl, in order. Cost: O(size). */
  takeAll(matches: (task: T) => boolean): T[] {
    const taken: T[] = []
    for (const [crawl, queue] of this.#queues) {
      for (const task of queue.take(matches)) taken.push(task)
      if (queue.size === 0) this.#queues.delete(crawl)
    }
    this.#size -= taken.length
    return taken
  }

  /** Crawl by crawl, each in order. */
  *[Symbol.iterator](): Generator<T> {
    for (const queue of this.#queues.values()) yield* queue
  }
}
