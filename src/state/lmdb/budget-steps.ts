import type { Budget, BudgetPlaces, FullBudget } from '../state-store.ts'
import { digest, groupDigest, type Keys } from './keys.ts'
import type { LmdbFile } from './lmdb-file.ts'

/** Places of a budget that are held. Those of earlier marks have lapsed. */
interface Holds {
  readonly count: number
  /** Epoch ms at which all of them lapse. */
  readonly until: number
  /** The value of a place that is held. */
  readonly mark: number
}

/** Share of its time below which a hold is renewed: a task asks again whenever its site lets it wait, and few of these write. */
const RENEWED_BELOW = 0.95

/** Value of a place that is kept, as of all that an older version gave. */
const KEPT = 1

/** Page budgets on LMDB: an entry per place, and beside them how many are taken and how many of these held. Every function is called within a step of the file. */
export class BudgetSteps {
  readonly #file: LmdbFile
  readonly #keys: Keys

  constructor(file: LmdbFile, keys: Keys) {
    this.#file = file
    this.#keys = keys
  }

  reserve(taskId: string, budgets: readonly Budget[], holdMs: number): FullBudget | undefined {
    const task = digest([taskId], 16)
    let held: FullBudget | undefined
    for (const { id, limit } of budgets) {
      const places = this.places(id)
      if (places.taken < limit || this.#file.get(this.#place(groupDigest(id), task)) !== undefined) continue
      if (places.taken - places.held >= limit) return { id, isHeld: false }
      held ??= { id, isHeld: true }
    }
    if (held !== undefined) return held
    for (const budget of budgets) this.#hold(budget, task, holdMs)
    return undefined
  }

  keep(taskId: string, budgetIds: readonly string[]): void {
    for (const [budget, place] of this.#placesOf(taskId, budgetIds)) {
      this.#letGo(budget, place)
      this.#file.put(place, KEPT)
    }
  }

  unreserve(taskId: string, budgetIds: readonly string[]): void {
    for (const [budget, place] of this.#placesOf(taskId, budgetIds)) {
      this.#letGo(budget, place)
      this.#file.remove(place)
      this.#file.put(this.#keys.of('budget', budget), this.#taken(budget) - 1)
    }
  }

  places(budgetId: string): BudgetPlaces {
    const budget = groupDigest(budgetId)
    return { taken: this.#taken(budget), held: this.#holds(budget).count }
  }

  #hold({ id, crawlId }: Budget, task: Buffer, holdMs: number): void {
    const budget = groupDigest(id)
    const place = this.#place(budget, task)
    const holds = this.#holds(budget)
    const isNew = this.#file.get(place) === undefined
    const until = this.#file.now() + holdMs
    if (!isNew && (holds.count === 0 || holds.until - this.#file.now() > holdMs * RENEWED_BELOW)) return
    this.#file.put(this.#keys.of('budgetHolds', budget), { ...holds, count: holds.count + (isNew ? 1 : 0), until } satisfies Holds)
    if (!isNew) return
    this.#file.put(place, holds.mark)
    this.#file.put(this.#keys.of('budget', budget), this.#taken(budget) + 1)
    if (crawlId === undefined) return
    const named = this.#keys.of('crawlBudget', groupDigest(crawlId), budget)
    // By its key: places that an older version gave are not under their crawl.
    if (this.#file.get(named) === undefined) this.#file.put(named, id)
  }

  /** The place is held no longer. */
  #letGo(budget: Buffer, place: Buffer): void {
    const holds = this.#holds(budget)
    if (this.#file.get(place) !== holds.mark) return
    this.#file.put(this.#keys.of('budgetHolds', budget), { ...holds, count: holds.count - 1 } satisfies Holds)
  }

  #holds(budget: Buffer): Holds {
    const holds = this.#file.get<Holds>(this.#keys.of('budgetHolds', budget))
    if (holds === undefined) return { count: 0, until: 0, mark: KEPT + 1 }
    return holds.until > this.#file.now() ? holds : { count: 0, until: 0, mark: holds.mark + 1 }
  }

  #taken(budget: Buffer): number {
    return this.#file.get<number>(this.#keys.of('budget', budget)) ?? 0
  }

  /** Places that the task has, each with its budget. */
  #placesOf(taskId: string, budgetIds: readonly string[]): readonly (readonly [Buffer, Buffer])[] {
    const task = digest([taskId], 16)
    const all = [...new Set(budgetIds)].map((id) => [groupDigest(id), this.#place(groupDigest(id), task)] as const)
    return all.filter(([, place]) => this.#file.get(place) !== undefined)
  }

  #place(budget: Buffer, task: Buffer): Buffer {
    return this.#keys.of('budgetPlace', budget, task)
  }
}
