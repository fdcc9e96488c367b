import { systemClock } from '../../src/kernel/clock.ts'
import { silentObserver } from '../../src/kernel/observe.ts'
import { ownProcess } from '../../src/machine/process-identity.ts'
import { LmdbStore } from '../../src/state/lmdb/lmdb-store.ts'
import type { LimiterRequest } from '../../src/state/state-store.ts'

/**
 * A process that shares the state folder with the test: `node --import tsx state-child.ts FOLDER CLUSTER`. It answers messages
 * `{id, do, ...}`; `write` never ends, it is there to be killed in the middle.
 */
type Order =
  | { readonly do: 'acquire'; readonly request: Omit<LimiterRequest, 'owner'> }
  | { readonly do: 'claim'; readonly urls: readonly string[]; readonly claimant: string }
  | { readonly do: 'fill'; readonly count: number; readonly bytes: number }
  | { readonly do: 'write'; readonly claimant: string }
  | { readonly do: 'accept'; readonly claimant: string; readonly count: number; readonly opens: number }

const [folder = '', clusterId = ''] = process.argv.slice(2)
const open = () =>
  LmdbStore.open({
    folder,
    namespace: { clusterId, prefix: 'test.' },
    clock: systemClock,
    observer: silentObserver,
    warmUp: false,
  })
let store = await open()

async function obey(order: Order): Promise<unknown> {
  switch (order.do) {
    case 'acquire':
      return store.acquire({ ...order.request, owner: ownProcess('child') })
    case 'claim':
      return store.claim(order.urls.map((canonicalUrl) => ({ crawlId: 'c', canonicalUrl, round: 0, claimant: order.claimant })))
    case 'fill':
      for (let index = 0; index < order.count; index += 1) await store.writeValue(`child-${index}`, 'x'.repeat(order.bytes))
      return 'filled'
    case 'accept':
      for (let index = 0; index < order.count * order.opens; index += 1) {
        await store.accept('c', [`${order.claimant}-${index}`])
        if ((index + 1) % order.count > 0) continue
        await store.close()
        store = await open()
      }
      return 'accepted'
    case 'write':
      for (let index = 0; ; index += 1) {
        const taskIds = Array.from({ length: 20 }, (_, item) => `${order.claimant}-${index}-${item}`)
        await store.accept('c', taskIds)
        await store.finalise('c', taskIds.slice(0, 10))
        // What was acknowledged must be there after the kill.
        process.send?.({ acknowledged: index + 1 })
      }
  }
}

process.on('message', (message: { id: number } & Order) => {
  obey(message).then(
    (result) => process.send?.({ id: message.id, result }),
    (error: unknown) => process.send?.({ id: message.id, error: `${(error as { code?: string }).code}: ${String(error)}` }),
  )
})
process.send?.({ ready: true })
