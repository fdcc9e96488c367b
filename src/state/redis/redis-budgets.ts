import type { Budget, BudgetPlaces, FullBudget } from '../state-store.ts'
import type { RedisLink } from './redis-link.ts'

/** Page budgets on Redis: a set of tasks that have a place in each, and a set of those that hold it, which lapses as a whole. */
export class RedisBudgets {
  readonly #link: RedisLink
  readonly #key: (kind: string, ...parts: readonly string[]) => string

  constructor(link: RedisLink, key: (kind: string, ...parts: readonly string[]) => string) {
    this.#link = link
    this.#key = key
  }

  async reserve(taskId: string, budgets: readonly Budget[], holdMs: number): Promise<FullBudget | undefined> {
    const keys = budgets.flatMap(({ id, crawlId }) => [...this.placeKeys(id), crawlId === undefined ? '' : this.#key('budgets', crawlId)])
    const args = [taskId, holdMs, ...budgets.flatMap(({ id, limit }) => [limit, id])]
    const answer = (await this.#link.script('reserveBudgets', keys, args)) as number
    const full = budgets[Math.abs(answer) - 1]
    return full === undefined ? undefined : { id: full.id, isHeld: answer < 0 }
  }

  async keep(taskId: string, budgetIds: readonly string[]): Promise<void> {
    const held = budgetIds.map((id) => this.#key('budget-held', id))
    await this.#link.script('removeFromSets', held, [taskId])
  }

  async unreserve(taskId: string, budgetIds: readonly string[]): Promise<void> {
    const both = budgetIds.flatMap((id) => this.placeKeys(id))
    await this.#link.script('removeFromSets', both, [taskId])
  }

  async places(budgetId: string): Promise<BudgetPlaces> {
    const [taken = 0, held = 0] = (await this.#link.script('sizesOf', this.placeKeys(budgetId), [])) as number[]
    return { taken, held }
  }

  /** Of the set of places and of those that are held; their prefixes for an empty id. */
  placeKeys(budgetId: string): string[] {
    return [this.#key('budget', budgetId), this.#key('budget-held', budgetId)]
  }
}
