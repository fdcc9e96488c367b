import type { RobotsEntry, Validators, WorkerHeartbeat } from '../state-store.ts'
import type { Timed } from './file-time.ts'
import type { Keys } from './keys.ts'
import type { LmdbFile } from './lmdb-file.ts'
import type { Sweep } from './sweep.ts'

/** robots.txt, validators, shared values and heartbeats on LMDB. Every function is called within a step or a read of the file. */
export class SharedSteps {
  readonly #file: LmdbFile
  readonly #keys: Keys
  readonly #sweep: Sweep

  constructor(file: LmdbFile, keys: Keys, sweep: Sweep) {
    this.#file = file
    this.#keys = keys
    this.#sweep = sweep
  }

  readRobots(origin: string, now: number): RobotsEntry | undefined {
    const found = this.#file.get<readonly [Timed, RobotsEntry]>(this.#keys.named('robots', origin))
    return found !== undefined && this.#file.time.until(found[0]) > now ? found[1] : undefined
  }

  writeRobots(origin: string, entry: RobotsEntry, ttlMs: number, now: number): void {
    const { verdict, body, status, fetchedAt } = entry
    this.#file.put(this.#keys.named('robots', origin), [this.#file.time.timed(now, ttlMs), { verdict, body, status, fetchedAt }])
    this.#sweep.afterAdding('robots', 1, now)
  }

  readValidators(canonicalUrl: string, now: number): Validators | undefined {
    const found = this.#file.get<readonly [Timed, Validators]>(this.#keys.named('validators', canonicalUrl))
    return found !== undefined && this.#file.time.until(found[0]) > now ? found[1] : undefined
  }

  writeValidators(canonicalUrl: string, validators: Validators | undefined, ttlMs: number, now: number): void {
    const key = this.#keys.named('validators', canonicalUrl)
    if (validators === undefined) {
      this.#file.remove(key)
      return
    }
    const { requestHash, etag, lastModified, bodySha256, fetchedAt, checkedAt } = validators
    this.#file.put(key, [this.#file.time.timed(now, ttlMs), { requestHash, etag, lastModified, bodySha256, fetchedAt, checkedAt }])
    this.#sweep.afterAdding('validators', 1, now)
  }

  readValue(name: string): string | undefined {
    return this.#file.get<string>(this.#keys.named('value', name))
  }

  writeValue(name: string, value: string): void {
    this.#file.put(this.#keys.named('value', name), value)
  }

  writeValueOnce(name: string, value: string): boolean {
    if (this.readValue(name) !== undefined) return false
    this.writeValue(name, value)
    return true
  }

  readTimed(name: string, now: number): string | undefined {
    const found = this.#file.get<readonly [Timed, string]>(this.#keys.named('timedValue', name))
    return found !== undefined && this.#file.time.until(found[0]) > now ? found[1] : undefined
  }

  writeTimed(name: string, value: string, ttlMs: number, now: number): void {
    this.#file.put(this.#keys.named('timedValue', name), [this.#file.time.timed(now, ttlMs), value])
    this.#sweep.afterAdding('timedValue', 1, now)
  }

  heartbeat(worker: WorkerHeartbeat, ttlMs: number, now: number): void {
    this.#file.put(this.#keys.named('worker', worker.workerId), [this.#file.time.timed(now, ttlMs), { ...worker }])
    this.#sweep.afterAdding('worker', 1, now)
  }

  removeWorker(workerId: string): void {
    this.#file.remove(this.#keys.named('worker', workerId))
  }

  workers(now: number): WorkerHeartbeat[] {
    const all = this.#file.entries<readonly [Timed, WorkerHeartbeat]>(this.#keys.kind('worker'), Number.MAX_SAFE_INTEGER)
    return all.filter(({ value }) => this.#file.time.until(value[0]) > now).map(({ value }) => value[1])
  }
}
