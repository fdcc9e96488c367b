import { ManualClock } from '../support/manual-clock.ts'
import { StoreBench } from '../support/state-stores.ts'
import { describeStateStore } from './state-store.contract.ts'

describeStateStore('LMDB', async () => {
  const bench = new StoreBench()
  const clock = new ManualClock()
  return {
    open: (options) => bench.lmdb({ ...options, clock, bootId: 'boot-1' }),
    elapse: (ms) => clock.advance(ms),
    end: () => bench.end(),
  }
})
