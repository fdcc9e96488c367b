import { deflateRawSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { decodeOffsetMap, encodeOffsetMap, type OffsetMap } from '../../../src/kafka/offset-map.ts'

const text = (map: OffsetMap, committed = 100n): string => {
  const encoded = encodeOffsetMap(map, committed)
  if (encoded.kind !== 'map') throw new Error(`too large: ${encoded.chars}`)
  return encoded.text
}

const SOME: OffsetMap = { span: 9, incomplete: [0, 3, 4] }

describe('the offset map', () => {
  it('is empty text where nothing above the offset is completed', () => {
    expect(text({ span: 0, incomplete: [] })).toBe('')
    expect(decodeOffsetMap('', 100n, 100n)).toEqual({ kind: 'map', map: { span: 0, incomplete: [] } })
  })

  it('keeps to the format that released versions wrote', () => {
    expect(text(SOME)).toBe('mo1byc75hgnm_w')
    expect(decodeOffsetMap('mo1byc75hgnm_w', 100n, 1_000n)).toEqual({ kind: 'map', map: SOME })
  })

  it('chooses the shortest codec', () => {
    // A long run, few single ones, and a checkered pattern.
    const burst = { span: 5_000, incomplete: Array.from({ length: 2_000 }, (_, index) => index) }
    const sparse = { span: 100_000, incomplete: [0, 50_000, 99_000] }
    const random = {
      span: 4_000,
      incomplete: Array.from({ length: 4_000 }, (_, index) => index).filter((index) => index === 0 || (index * 7_919) % 13 < 6),
    }
    expect(text(burst).charAt(3)).toBe('r')
    expect(text(sparse).charAt(3)).toBe('g')
    for (const map of [burst, sparse, random]) {
      expect(decodeOffsetMap(text(map), 100n, 1_000_000n)).toEqual({ kind: 'map', map })
      expect(text(map).length).toBeLessThan(1_000)
    }
  })

  it('gives the length instead of a text over the limit', () => {
    const encoded = encodeOffsetMap({ span: 100_000, incomplete: [0, 7, 99, 5_000] }, 1n, 10)
    expect(encoded).toMatchObject({ kind: 'too-large', chars: expect.any(Number) })
  })

  it.each([
    ['another program', 'lAAECAw==', 'foreign'],
    ['a user', 'some note', 'foreign'],
    ['a later version', 'mo2byc75hgnm_w', 'version'],
    ['no codec', 'mo1', 'corrupt'],
    ['an unknown codec', `mo1x${text(SOME).slice(4)}`, 'corrupt'],
    ['a changed letter', 'mo1byc75hgnn_w', 'corrupt'],
    ['a cut text', 'mo1byc75hg', 'corrupt'],
  ])('drops what comes from %s', (_, metadata, reason) => {
    expect(decodeOffsetMap(metadata, 100n, 1_000n)).toEqual({ kind: 'unreadable', reason })
  })

  it('drops a map that stands next to another offset than its own', () => {
    expect(decodeOffsetMap(text(SOME, 100n), 101n, 1_000n)).toEqual({ kind: 'unreadable', reason: 'corrupt' })
  })

  it('drops a map that calls offsets completed which were never written', () => {
    expect(decodeOffsetMap(text(SOME, 100n), 100n, 108n)).toEqual({ kind: 'unreadable', reason: 'beyond-log-end' })
    expect(decodeOffsetMap(text(SOME, 100n), 100n, 109n)).toMatchObject({ kind: 'map' })
  })

  it('does not let a small text become a large allocation', () => {
    const sign = (codec: string, rest: Buffer): string => {
      let hash = 0x811c9dc5
      for (const byte of [...Buffer.from(`100${codec}`), ...rest]) hash = Math.imul(hash ^ byte, 0x01000193)
      const check = Buffer.alloc(4)
      check.writeUInt32BE(hash >>> 0)
      return `mo1${codec}${Buffer.concat([check, rest]).toString('base64url')}`
    }
    const span = Buffer.from([0xff, 0xff, 0xff, 0x07])
    const hugeRun = sign('r', Buffer.concat([span, span]))
    const bomb = sign('G', Buffer.concat([span, deflateRawSync(Buffer.alloc(50_000_000, 1))]))
    expect(decodeOffsetMap(hugeRun, 100n, 1n << 40n)).toEqual({ kind: 'unreadable', reason: 'corrupt' })
    expect(decodeOffsetMap(bomb, 100n, 1n << 40n)).toEqual({ kind: 'unreadable', reason: 'corrupt' })
  })
})
