/**
 * What came out of decoding, never more than was asked for.
 * - size: there is more; `bytes` holds the first `maxBytes`.
 * - cut: the input ends too early; `bytes` holds what it gave.
 * - broken: the input is damaged; `bytes` holds what came before the damage.
 * hasTail: bytes follow the end of what was packed in brotli or deflate, and were passed over. Other readers fail on them.
 */
export interface Unpacked {
  readonly bytes: Buffer
  readonly problem: 'size' | 'cut' | 'broken' | null
  readonly hasTail?: true
}
