import { ManualClock } from '../support/manual-clock.ts'
import { StoreBench } from '../support/state-stores.ts'
import { describeStateStore } from './state-store.contract.ts'

describeStateStore('LMDB', async () => {
  const bench = new StoreBench()
  const clock = new ManualClock()
  return {
    open: (options) => bench.lmdb({ ...options, clock, bootId: 'boot-1' }),
    elapse: (ms) => clock.advance(ms),
    isKept: async (store, key, ms) => {
      await clock.advance(ms)
      const { latencyMs, trips } = await store.limiterState(key)
      return latencyMs > 0 || trips > 0
    },
    end: () => bench.end(),
  }
})
