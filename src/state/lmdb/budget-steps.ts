import type { Budget, BudgetPlaces, FullBudget } from '../state-store.ts'
import { groupDigest, type Keys, taskDigest } from './keys.ts'
import type { LmdbFile } from './lmdb-file.ts'

/** What a budget has given out. All of it is one entry: each page of a crawl reads and writes it twice. */
interface Places extends BudgetPlaces {
  /** Epoch ms at which all that are held lapse. */
  readonly until: number
  /** The value of a place that is held; those of earlier marks have lapsed. */
  readonly mark: number
}

/** As it lies in the file. */
type StoredPlaces = readonly [taken: number, held: number, until: number, mark: number]

/** Share of its time below which a hold is renewed: a task asks again whenever its site lets it wait, and few of these write. */
const RENEWED_BELOW = 0.95

/** Value of a place that is kept. */
const KEPT = 1
/** Beyond the marks of an older version, whose places are all kept as far as this one knows. */
const FIRST_MARK = 1_000_000

/** Page budgets on LMDB: an entry per budget, and one per place. Every function is called within a step of the file. */
export class BudgetSteps {
  readonly #file: LmdbFile
  readonly #keys: Keys

  constructor(file: LmdbFile, keys: Keys) {
    this.#file = file
    this.#keys = keys
  }

  reserve(taskId: string, budgets: readonly Budget[], holdMs: number): FullBudget | undefined {
    const task = taskDigest(taskId)
    const asked = budgets.map((budget) => {
      const group = groupDigest(budget.id)
      const place = this.#keys.of('budgetPlace', group, task)
      return { budget, group, place, places: this.#places(group), isNew: this.#file.get(place) === undefined }
    })
    let full: FullBudget | undefined
    for (const { budget, places, isNew } of asked) {
      if (!isNew || places.taken < budget.limit) continue
      if (places.taken - places.held >= budget.limit) return { id: budget.id, isHeld: false }
      full ??= { id: budget.id, isHeld: true }
    }
    if (full !== undefined) return full
    const until = this.#file.now() + holdMs
    for (const { budget, group, place, places, isNew } of asked) {
      if (isNew) {
        this.#file.put(place, places.mark)
        this.#write(group, { ...places, taken: places.taken + 1, held: places.held + 1, until })
        this.#nameBudget(budget, group)
      } else if (places.held > 0 && until - places.until >= holdMs * (1 - RENEWED_BELOW)) this.#write(group, { ...places, until })
    }
    return undefined
  }

  keep(taskId: string, budgetIds: readonly string[]): void {
    for (const { group, place, value } of this.#placesOf(taskId, budgetIds)) {
      const places = this.#places(group)
      if (value !== KEPT) this.#file.put(place, KEPT)
      if (value === places.mark) this.#write(group, { ...places, held: places.held - 1 })
    }
  }

  unreserve(taskId: string, budgetIds: readonly string[]): void {
    for (const { group, place, value } of this.#placesOf(taskId, budgetIds)) {
      const places = this.#places(group)
      this.#file.remove(place)
      this.#write(group, { ...places, taken: places.taken - 1, held: places.held - (value === places.mark ? 1 : 0) })
    }
  }

  places(budgetId: string): BudgetPlaces {
    const { taken, held } = this.#places(groupDigest(budgetId))
    return { taken, held }
  }

  /** Its crawl is forgotten with its budgets. By its key: places that an older version gave are not under their crawl. */
  #nameBudget({ id, crawlId }: Budget, group: Buffer): void {
    if (crawlId === undefined) return
    const named = this.#keys.of('crawlBudget', groupDigest(crawlId), group)
    if (this.#file.get(named) === undefined) this.#file.put(named, id)
  }

  #places(group: Buffer): Places {
    const stored = this.#file.get<StoredPlaces>(this.#keys.of('budgetTotals', group))
    const [taken, held, until, mark] = stored ?? [this.#takenBefore(group), 0, 0, FIRST_MARK]
    return until > this.#file.now() ? { taken, held, until, mark } : { taken, held: 0, until: 0, mark: mark + 1 }
  }

  /** How many places an older version has given. Under a key of its own: it may still be at work. */
  #takenBefore(group: Buffer): number {
    return this.#file.get<number>(this.#keys.of('budget', group)) ?? 0
  }

  #write(group: Buffer, { taken, held, until, mark }: Places): void {
    this.#file.put(this.#keys.of('budgetTotals', group), [taken, held, until, mark] satisfies StoredPlaces)
  }

  /** Places that the task has, each with its budget and its value. */
  *#placesOf(
    taskId: string,
    budgetIds: readonly string[],
  ): Iterable<{ readonly group: Buffer; readonly place: Buffer; readonly value: number }> {
    const task = taskDigest(taskId)
    for (const id of new Set(budgetIds)) {
      const group = groupDigest(id)
      const place = this.#keys.of('budgetPlace', group, task)
      const value = this.#file.get<number>(place)
      if (value !== undefined) yield { group, place, value }
    }
  }
}
