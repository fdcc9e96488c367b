import { createHook } from 'node:async_hooks'

/**
 * Knows whether an extractor has ever begun something that runs after its page: a promise, a timer, a read of a file. Honest code has
 * not, and its pages need no look at what such things did between them.
 */
export class LeftBehind {
  #begun = 0
  #isThere = false

  constructor() {
    createHook({
      init: () => {
        this.#begun += 1
      },
    }).enable()
  }

  get isThere(): boolean {
    return this.#isThere
  }

  /** Calls code of an extractor. What is once there stays: a timer may begin another one. */
  during<T>(call: () => T): T {
    const before = this.#begun
    try {
      return call()
    } finally {
      if (this.#begun !== before) this.#isThere = true
    }
  }
}
