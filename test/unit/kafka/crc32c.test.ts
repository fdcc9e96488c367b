import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { crc32c } from '../../../src/kafka/crc32c.ts'

/** The polynomial as it is written down, bit by bit. */
function bitByBit(bytes: Uint8Array): number {
  let crc = -1
  for (const byte of bytes) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0)
  }
  return ~crc >>> 0
}

describe('crc32c', () => {
  it('gives the check values of its definition', () => {
    // Source: RFC 3720, B.4, and the catalogue's check value of "123456789".
    expect(crc32c(Buffer.from('123456789')).toString(16)).toBe('e3069283')
    expect(crc32c(Buffer.alloc(32)).toString(16)).toBe('8a9136aa')
    expect(crc32c(Buffer.alloc(32, 0xff)).toString(16)).toBe('62a8ab43')
    expect(crc32c(Buffer.from(Array.from({ length: 32 }, (_, index) => index))).toString(16)).toBe('46dd794e')
    expect(crc32c(Buffer.alloc(0))).toBe(0)
  })

  it('is the same for any bytes, of any length and at any place in their buffer, as the polynomial taken bit by bit', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.nat({ max: 40 }), (bytes, start) => {
        expect(crc32c(bytes.subarray(start))).toBe(bitByBit(bytes.subarray(start)))
      }),
    )
  })
})
