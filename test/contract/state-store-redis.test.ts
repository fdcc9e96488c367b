import { Redis } from 'ioredis'
import { systemClock } from '../../src/kernel/clock.ts'
import { redisUrl } from '../support/services.ts'
import { StoreBench } from '../support/state-stores.ts'
import { describeStateStore } from './state-store.contract.ts'

describeStateStore('Redis', async () => {
  const bench = new StoreBench()
  return {
    open: (options) => bench.redis(options),
    // The server's own time is what the store goes by: it can only be let pass. One more ms, since its clock and ours differ in fractions.
    elapse: (ms) => systemClock.sleep(ms + 1),
    isKept: async (_, key, ms) => {
      const redis = new Redis(redisUrl())
      const leftMs = await redis.pttl(`${bench.clusterId}:test.:pace:${key}`)
      await redis.quit()
      return leftMs > ms
    },
    end: async () => {
      await bench.end()
      await removeKeys(`${bench.clusterId}:*`)
    },
  }
})

async function removeKeys(pattern: string): Promise<void> {
  const redis = new Redis(redisUrl())
  for await (const keys of redis.scanStream({ match: pattern, count: 1_000 })) if (keys.length > 0) await redis.unlink(keys)
  await redis.quit()
}
