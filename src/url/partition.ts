/**
 * The partition of a key, as Java's default partitioner chooses it: murmur2 of the key's bytes, sign bit cleared, modulo the number
 * of partitions. So producers in Java, librdkafka (`murmur2_random`) and Millrace put one site on one partition.
 * Source: org.apache.kafka.common.utils.Utils.murmur2 and BuiltInPartitioner.partitionForKey.
 */
const SEED = 0x9747b28c
const M = 0x5bd1e995
const R = 24

/** Shape: any bytes -> signed 32-bit integer, equal to Java's. */
export function murmur2(data: Uint8Array): number {
  const length = data.length
  let h = SEED ^ length
  const whole = length & ~3
  for (let i = 0; i < whole; i += 4) {
    let k = byte(data, i) | (byte(data, i + 1) << 8) | (byte(data, i + 2) << 16) | (byte(data, i + 3) << 24)
    k = Math.imul(k, M)
    k ^= k >>> R
    k = Math.imul(k, M)
    h = Math.imul(h, M) ^ k
  }
  const rest = length & 3
  if (rest > 2) h ^= byte(data, whole + 2) << 16
  if (rest > 1) h ^= byte(data, whole + 1) << 8
  if (rest > 0) h = Math.imul(h ^ byte(data, whole), M)
  h ^= h >>> 13
  h = Math.imul(h, M)
  return (h ^ (h >>> 15)) | 0
}

/** Shape: key as UTF-8 text or bytes, count >= 1 -> 0 … count - 1. Errors: RangeError when count is no positive integer. */
export function partitionFor(key: string | Uint8Array, count: number): number {
  if (!Number.isInteger(count) || count < 1) throw new RangeError(`the number of partitions is ${count}; expected an integer of at least 1`)
  const bytes = typeof key === 'string' ? Buffer.from(key, 'utf8') : key
  return (murmur2(bytes) & 0x7fffffff) % count
}

function byte(data: Uint8Array, index: number): number {
  return data[index] ?? 0
}
