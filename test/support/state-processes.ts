import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const SCRIPT = fileURLToPath(new URL('./state-child.ts', import.meta.url))

/** A child that shares a state folder; see state-child.ts for what it can be told. */
export class StateChild {
  readonly process: ChildProcess
  /** Rounds of `write` that it has told of. */
  acknowledged = 0
  #nextId = 1
  readonly #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (reason: unknown) => void }>()

  private constructor(process: ChildProcess) {
    this.process = process
    process.on('message', (message: { id?: number; result?: unknown; error?: string; acknowledged?: number }) => {
      if (message.acknowledged !== undefined) this.acknowledged = message.acknowledged
      const waiting = message.id === undefined ? undefined : this.#waiting.get(message.id)
      if (message.error === undefined) waiting?.resolve(message.result)
      else waiting?.reject(new Error(message.error))
    })
    process.once('exit', (code, signal) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`the child ended with ${signal ?? code}`))
    })
  }

  static async start(folder: string, clusterId: string): Promise<StateChild> {
    const child = new StateChild(fork(SCRIPT, [folder, clusterId], { execArgv: ['--import', 'tsx'] }))
    const ended = once(child.process, 'exit').then(([code]) => {
      throw new Error(`the child ended with ${code} before it was ready`)
    })
    await Promise.race([once(child.process, 'message'), ended])
    ended.catch(() => undefined)
    return child
  }

  tell<T>(order: { do: string } & Record<string, unknown>): Promise<T> {
    const id = this.#nextId++
    const answer = new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject })
    })
    this.process.send({ id, ...order })
    return answer
  }

  async kill(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return
    const ended = once(this.process, 'exit')
    this.process.kill('SIGKILL')
    await ended
  }
}
