/**
 * What came out of decoding, never more than was asked for.
 * - size: there is more; `bytes` holds the first `maxBytes`.
 * - cut: the input ends too early; `bytes` holds what it gave.
 * - broken: the input is damaged; `bytes` holds what came before the damage.
 */
export interface Unpacked {
  readonly bytes: Buffer
  readonly problem: 'size' | 'cut' | 'broken' | null
}
