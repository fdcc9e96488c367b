import type { CrawlCounts, OpenCrawl, OpenCrawls } from '../state-store.ts'
import { groupDigest, type Keys, taskBytes, taskDigest, timeBytes } from './keys.ts'
import type { LmdbFile } from './lmdb-file.ts'

interface CrawlRecord {
  readonly crawlId: string
  /** Accepted and not final. */
  readonly open: number
  readonly final: number
  /** Epoch ms at which something was last heard of a crawl without open tasks; null: it has some. */
  readonly endedAt: number | null
  /** Keys of its tasks are as `taskBytes` makes them; those of a crawl that an older version began are digests all. */
  readonly hasTaskBytes?: true
}

/** Where a task of a crawl lies, by whether it is final. */
type TaskKeys = (taskId: string) => { readonly open: Buffer; readonly final: Buffer }

/**
 * Accepted and final tasks per crawl on LMDB. Final tasks are all accepted, so what is kept is the open ones and the final
 * ones, each task once, and their numbers beside them. A crawl is in the index of those that are open, or among those that have
 * ended, by time. Every function is called within a step of the file.
 */
export class CrawlSteps {
  readonly #file: LmdbFile
  readonly #keys: Keys

  constructor(file: LmdbFile, keys: Keys) {
    this.#file = file
    this.#keys = keys
  }

  /** Shape: per task whether it is final. */
  accept(crawlId: string, taskIds: readonly string[]): boolean[] {
    const final: boolean[] = []
    this.#change(crawlId, (keysOf) => {
      let open = 0
      for (const taskId of taskIds) {
        const keys = keysOf(taskId)
        const isFinal = this.#has(keys.final)
        final.push(isFinal)
        if (isFinal || this.#has(keys.open)) continue
        this.#file.put(keys.open, 1)
        open += 1
      }
      return { open, final: 0 }
    })
    return final
  }

  finalise(crawlId: string, taskIds: readonly string[]): void {
    this.#change(crawlId, (keysOf) => {
      const added = { open: 0, final: 0 }
      for (const taskId of taskIds) {
        const keys = keysOf(taskId)
        if (this.#has(keys.final)) continue
        this.#file.put(keys.final, 1)
        added.final += 1
        if (!this.#has(keys.open)) continue
        this.#file.remove(keys.open)
        added.open -= 1
      }
      return added
    })
  }

  counts(crawlId: string): CrawlCounts {
    const record = this.#record(groupDigest(crawlId))
    return record === undefined ? { accepted: 0, final: 0 } : { accepted: record.open + record.final, final: record.final }
  }

  /** Drops up to `limit` open tasks, where the counts of the crawl are still these. Shape: how many are open no longer. */
  dropOpen(crawlId: string, { accepted, final }: CrawlCounts, limit: number): number {
    const counts = this.counts(crawlId)
    const open = accepted - final
    if (open <= 0 || counts.accepted !== accepted || counts.final !== final) return 0
    const entries = this.#file.entries(this.#keys.of('openTask', groupDigest(crawlId)), limit)
    for (const { key } of entries) this.#file.remove(key)
    const dropped = entries.length < limit ? open : entries.length
    this.#change(crawlId, () => ({ open: -dropped, final: 0 }))
    return dropped
  }

  /** The others are the first by their digests, which come in no order of the crawls; how far they reach tells how many there are. */
  openCrawls(named: readonly string[], atMost: number): OpenCrawls {
    const openOf = (crawlId: string): OpenCrawl => ({ crawlId, open: this.#record(groupDigest(crawlId))?.open ?? 0 })
    const kind = this.#keys.kind('openCrawl')
    const first = this.#file.entries<string>(kind, atMost)
    const last = first.length < atMost ? undefined : first.at(-1)?.key.readUIntBE(kind.length, 6)
    const asked = new Set(named)
    return {
      count: last === undefined ? first.length : Math.max(first.length, Math.round((first.length * 2 ** 48) / (last + 1))),
      named: [...asked].map(openOf).filter(({ open }) => open > 0),
      others: first.filter(({ value }) => !asked.has(value)).map(({ value }) => openOf(value)),
    }
  }

  /** Crawls that ended so long ago, the one that ended first before the others. */
  ended(quietMs: number, limit: number): string[] {
    const first = this.#file.entries<string>(this.#keys.kind('endedCrawl'), limit).map(({ value }) => value)
    return first.filter((crawlId) => this.#hasEnded(groupDigest(crawlId), quietMs))
  }

  /**
   * Drops up to `limit` entries of a crawl. `more`: something is left; its record goes last, so that it can go on. `kept`: it has not
   * ended so long ago, or goes on again.
   */
  forget(crawlId: string, quietMs: number, limit: number): 'gone' | 'more' | 'kept' {
    const group = groupDigest(crawlId)
    if (!this.#hasEnded(group, quietMs)) return 'kept'
    let left = limit
    const drop = (prefix: Buffer): void => {
      if (left <= 0) return
      const entries = this.#file.entries(prefix, left)
      for (const { key } of entries) this.#file.remove(key)
      left -= entries.length
    }
    drop(this.#keys.of('claim', group))
    drop(this.#keys.of('finalTask', group))
    for (const { key, value } of this.#file.entries<string>(this.#keys.of('crawlBudget', group), Math.max(1, left))) {
      const budget = groupDigest(value)
      drop(this.#keys.of('budgetPlace', budget))
      if (left <= 0) break
      this.#file.remove(this.#keys.of('budgetTotals', budget))
      this.#file.remove(this.#keys.of('budget', budget))
      this.#file.remove(key)
      left -= 1
    }
    if (left <= 0) return 'more'
    this.#leaveEnded(group)
    this.#file.remove(this.#keys.of('crawl', group))
    return 'gone'
  }

  #record(group: Buffer): CrawlRecord | undefined {
    return this.#file.get<CrawlRecord>(this.#keys.of('crawl', group))
  }

  #hasEnded(group: Buffer, quietMs: number): boolean {
    const endedAt = this.#record(group)?.endedAt ?? null
    return endedAt !== null && endedAt <= this.#file.now() - quietMs
  }

  #leaveEnded(group: Buffer): void {
    const endedAt = this.#record(group)?.endedAt ?? null
    if (endedAt !== null) this.#file.remove(this.#keys.of('endedCrawl', timeBytes(endedAt), group))
  }

  #change(crawlId: string, add: (keysOf: TaskKeys) => { open: number; final: number }): void {
    const group = groupDigest(crawlId)
    const before = this.#record(group)
    const hasTaskBytes = before === undefined || before.hasTaskBytes === true
    const added = add((taskId) => {
      const id = hasTaskBytes ? taskBytes(taskId) : taskDigest(taskId)
      return { open: this.#keys.of('openTask', group, id), final: this.#keys.of('finalTask', group, id) }
    })
    const open = (before?.open ?? 0) + added.open
    const endedAt = open > 0 ? null : this.#file.now()
    this.#leaveEnded(group)
    if (endedAt !== null) this.#file.put(this.#keys.of('endedCrawl', timeBytes(endedAt), group), crawlId)
    const openKey = this.#keys.of('openCrawl', group)
    if (open > 0 !== this.#has(openKey)) {
      if (open > 0) this.#file.put(openKey, crawlId)
      else this.#file.remove(openKey)
    }
    const final = (before?.final ?? 0) + added.final
    this.#file.put(this.#keys.of('crawl', group), { crawlId, open, final, endedAt, ...(hasTaskBytes ? { hasTaskBytes } : {}) })
  }

  #has(key: Buffer): boolean {
    return this.#file.get(key) !== undefined
  }
}
