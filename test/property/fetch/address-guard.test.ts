import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createAddressPolicy } from '../../../src/fetch/address-policy.ts'

const strict = createAddressPolicy([])

/** IPv4 blocks that nobody outside may be sent to: first address and length of the prefix. */
const BLOCKS: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]

const inBlock = fc
  .constantFrom(...BLOCKS)
  .chain(([base, bits]) => fc.nat({ max: 2 ** (32 - bits) - 1 }).map((offset) => (numberOf(base) + offset) >>> 0))

function numberOf(dotted: string): number {
  return dotted.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
}

const octets = (address: number): number[] => [24, 16, 8, 0].map((shift) => (address >>> shift) & 255)
const dotted = (address: number): string => octets(address).join('.')
const groups = (address: number): string => `${(address >>> 16).toString(16)}:${(address & 0xffff).toString(16)}`

/** Ways in which an address is written in a URL, all of them the same machine to whoever connects. */
const SPELLINGS: readonly ((address: number) => string)[] = [
  dotted,
  (address) => `${dotted(address)}.`,
  (address) => String(address),
  (address) => `0x${address.toString(16)}`,
  (address) => `0${address.toString(8)}`,
  (address) =>
    octets(address)
      .map((part) => `0x${part.toString(16)}`)
      .join('.'),
  (address) =>
    octets(address)
      .map((part) => `0${part.toString(8)}`)
      .join('.'),
  (address) => `${address >>> 24}.${address & 0xffffff}`,
  (address) => `${address >>> 24}.${(address >>> 16) & 255}.${address & 0xffff}`,
  // Digits and dots of other scripts that the URL parser maps to ours.
  (address) => dotted(address).replaceAll(/\d/g, (digit) => String.fromCharCode(0xff10 + Number(digit))),
  (address) => dotted(address).replaceAll('.', '\u3002'),
  (address) => dotted(address).replaceAll(/\d/g, (digit) => `%3${digit}`),
  (address) => `[::ffff:${dotted(address)}]`,
  (address) => `[::ffff:${groups(address)}]`,
  (address) => `[0:0:0:0:0:ffff:${groups(address)}]`,
  (address) => `[64:ff9b::${groups(address)}]`,
  (address) => `[64:ff9b:1::${groups(address)}]`,
  (address) => `[2002:${groups(address)}::1]`,
  (address) => `[::${groups(address)}]`,
]

describe('an address that is not public', () => {
  it('is refused however it is written', () => {
    fc.assert(
      fc.property(inBlock, fc.constantFrom(...SPELLINGS), (address, spell) => {
        const text = `http://${spell(address)}/`
        // What is no host at all is never asked either.
        if (!URL.canParse(text)) return
        const host = new URL(text).hostname.replace(/^\[|\]$/g, '')
        expect([text, strict(host)]).not.toEqual([text, undefined])
      }),
      { numRuns: 2_000 },
    )
  })

  it('is allowed only where the operator says so, and then in the forms that mean the same machine', () => {
    const allowed = createAddressPolicy(['10.0.0.0/8'])
    fc.assert(
      fc.property(inBlock, (address) => {
        const isIn = address >>> 24 === 10
        for (const form of [dotted(address), `::ffff:${groups(address)}`, `64:ff9b::${groups(address)}`]) {
          expect([form, allowed(form) === undefined]).toEqual([form, isIn])
        }
      }),
      { numRuns: 500 },
    )
  })
})
