import type { Budget, CrawlCounts, OpenCrawl } from '../state-store.ts'
import { digest, groupDigest, type Keys } from './keys.ts'
import type { LmdbFile } from './lmdb-file.ts'

interface CrawlRecord {
  readonly crawlId: string
  /** Accepted and not final. */
  readonly open: number
  readonly final: number
}

/**
 * Accepted and final tasks per crawl, and page budgets, on LMDB. Final tasks are all accepted, so what is kept is the open ones and the
 * final ones, each task once, and their numbers beside them. Every function is called within a step of the file.
 */
export class CrawlSteps {
  readonly #file: LmdbFile
  readonly #keys: Keys

  constructor(file: LmdbFile, keys: Keys) {
    this.#file = file
    this.#keys = keys
  }

  accept(crawlId: string, taskIds: readonly string[]): void {
    this.#change(crawlId, (group) => {
      let open = 0
      for (const taskId of taskIds) {
        const id = digest([taskId], 16)
        const openKey = this.#keys.of('openTask', group, id)
        if (this.#has(openKey) || this.#has(this.#keys.of('finalTask', group, id))) continue
        this.#file.put(openKey, taskId)
        open += 1
      }
      return { open, final: 0 }
    })
  }

  finalise(crawlId: string, taskIds: readonly string[]): void {
    this.#change(crawlId, (group) => {
      const added = { open: 0, final: 0 }
      for (const taskId of taskIds) {
        const id = digest([taskId], 16)
        const finalKey = this.#keys.of('finalTask', group, id)
        if (this.#has(finalKey)) continue
        this.#file.put(finalKey, 1)
        added.final += 1
        const openKey = this.#keys.of('openTask', group, id)
        if (!this.#has(openKey)) continue
        this.#file.remove(openKey)
        added.open -= 1
      }
      return added
    })
  }

  counts(crawlId: string): CrawlCounts {
    const record = this.#file.get<CrawlRecord>(this.#keys.of('crawl', groupDigest(crawlId)))
    return record === undefined ? { accepted: 0, final: 0 } : { accepted: record.open + record.final, final: record.final }
  }

  openTasks(crawlId: string, limit: number): string[] {
    return this.#file.entries<string>(this.#keys.of('openTask', groupDigest(crawlId)), limit).map((entry) => entry.value)
  }

  crawlIds(): string[] {
    return this.#records().map(({ crawlId }) => crawlId)
  }

  openCrawls(): OpenCrawl[] {
    return this.#records().flatMap(({ crawlId, open }) => (open > 0 ? [{ crawlId, open }] : []))
  }

  /** Drops up to `limit` entries of the crawl; true when nothing is left. The record of the crawl goes last, so that it can go on. */
  forget(crawlId: string, limit: number): boolean {
    const group = groupDigest(crawlId)
    let left = limit
    const drop = (prefix: Buffer): void => {
      if (left <= 0) return
      const entries = this.#file.entries(prefix, left)
      for (const { key } of entries) this.#file.remove(key)
      left -= entries.length
    }
    drop(this.#keys.of('claim', group))
    drop(this.#keys.of('openTask', group))
    drop(this.#keys.of('finalTask', group))
    for (const { key, value } of this.#file.entries<string>(this.#keys.of('crawlBudget', group), Math.max(1, left))) {
      const budget = groupDigest(value)
      drop(this.#keys.of('budgetPlace', budget))
      if (left <= 0) break
      this.#file.remove(this.#keys.of('budget', budget))
      this.#file.remove(key)
      left -= 1
    }
    if (left <= 0) return false
    this.#file.remove(this.#keys.of('crawl', group))
    return true
  }

  reserve(taskId: string, budgets: readonly Budget[]): string | undefined {
    const task = digest([taskId], 16)
    const missing: Budget[] = []
    for (const budget of budgets) {
      if (this.#has(this.#place(budget.id, task)) || missing.some((other) => other.id === budget.id)) continue
      if (this.reserved(budget.id) >= budget.limit) return budget.id
      missing.push(budget)
    }
    for (const { id, crawlId } of missing) {
      const taken = this.reserved(id)
      this.#file.put(this.#place(id, task), 1)
      this.#file.put(this.#keys.of('budget', groupDigest(id)), taken + 1)
      if (taken === 0 && crawlId !== undefined) this.#file.put(this.#keys.of('crawlBudget', groupDigest(crawlId), groupDigest(id)), id)
    }
    return undefined
  }

  unreserve(taskId: string, budgetIds: readonly string[]): void {
    const task = digest([taskId], 16)
    for (const id of budgetIds) {
      const place = this.#place(id, task)
      if (!this.#has(place)) continue
      this.#file.remove(place)
      this.#file.put(this.#keys.of('budget', groupDigest(id)), this.reserved(id) - 1)
    }
  }

  reserved(budgetId: string): number {
    return this.#file.get<number>(this.#keys.of('budget', groupDigest(budgetId))) ?? 0
  }

  #records(): CrawlRecord[] {
    return this.#file.entries<CrawlRecord>(this.#keys.kind('crawl'), Number.MAX_SAFE_INTEGER).map((entry) => entry.value)
  }

  #place(budgetId: string, task: Buffer): Buffer {
    return this.#keys.of('budgetPlace', groupDigest(budgetId), task)
  }

  #change(crawlId: string, add: (group: Buffer) => { open: number; final: number }): void {
    const group = groupDigest(crawlId)
    const key = this.#keys.of('crawl', group)
    const before = this.#file.get<CrawlRecord>(key)
    const added = add(group)
    this.#file.put(key, { crawlId, open: (before?.open ?? 0) + added.open, final: (before?.final ?? 0) + added.final })
  }

  #has(key: Buffer): boolean {
    return this.#file.get(key) !== undefined
  }
}
