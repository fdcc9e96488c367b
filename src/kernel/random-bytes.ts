import { randomFillSync } from 'node:crypto'

const POOL_BYTES = 4_096
const pool = Buffer.allocUnsafe(POOL_BYTES)
let used = POOL_BYTES

/**
 * Random bytes of the system for ids, which are made several times for every page: drawn from a pool, since asking for a few costs as much
 * as for thousands. Shape: a copy; no byte is given out twice. Units: size at most 4,096.
 */
export function randomBytes(size: number): Buffer {
  if (used + size > POOL_BYTES) {
    randomFillSync(pool)
    used = 0
  }
  used += size
  return Buffer.from(pool.subarray(used - size, used))
}
