import { crc32c } from '../../kafka/crc32c.ts'

/**
 * Keys in parts that can each be held in memory: whoever reads a log once for each part meets every key in one of them. Shape: at least
 * one part, each of about `atOnce` of `total`.
 */
export function keyParts(total: number, atOnce: number): readonly ((key: string) => boolean)[] {
  const count = Math.max(1, Math.ceil(total / atOnce))
  if (count === 1) return [() => true]
  return Array.from({ length: count }, (_, part) => (key: string) => crc32c(Buffer.from(key)) % count === part)
}
