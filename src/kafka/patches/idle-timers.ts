import type { KafkajsModules } from './kafkajs-modules.ts'

interface RequestQueue {
  readonly pending: readonly unknown[]
  scheduleCheckPendingRequests(): void
}

/**
 * No timer for a queue in which nothing waits. Stock kafkajs arms one after every answer, computes its delay as a negative number
 * when the broker does not throttle, and so fires every millisecond on every connection for ever.
 * Nothing is lost: a request that has to wait arms the timer itself when it is pushed.
 */
export function patchIdleTimers(modules: KafkajsModules): void {
  const { prototype } = modules.load('network/requestQueue/index.js') as { prototype: RequestQueue }
  const stock = prototype.scheduleCheckPendingRequests
  prototype.scheduleCheckPendingRequests = function scheduleOnlyWhenPending(this: RequestQueue): void {
    if (this.pending.length > 0) stock.call(this)
  }
}
