import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { canonicalUrl } from '../../src/url/canonical-url.ts'
import { parseFetchUrl } from '../../src/url/parse-url.ts'
import { partitionFor } from '../../src/url/partition.ts'
import { registrableDomain } from '../../src/url/registrable-domain.ts'

/** URLs built of the pieces that canonical forms go wrong with. */
const piece = fc.oneof(
  fc.constantFrom(
    '%',
    '%4',
    '%25',
    '%34',
    '%2f',
    '%2E',
    '%7e',
    '%C3%a9',
    '+',
    ' ',
    '|',
    '"',
    '.',
    '..',
    '/',
    '&',
    '=',
    '?',
    ';',
    'é',
    '中',
    '😀',
    'A',
    '0',
  ),
  fc.string({ maxLength: 3 }),
)
const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''))
const host = fc.constantFrom('Example.TEST', 'example.test.', 'bücher.example.test', '127.1', '[::1]', 'a..b', 'localhost', 'x.github.io')
const url = fc
  .record({
    scheme: fc.constantFrom('http', 'HTTPS'),
    host,
    path: text,
    query: fc.option(text, { nil: undefined }),
    fragment: fc.option(text, { nil: undefined }),
  })
  .map(({ scheme, host, path, query, fragment }) => {
    return `${scheme}://${host}/${path}${query === undefined ? '' : `?${query}`}${fragment === undefined ? '' : `#${fragment}`}`
  })

describe('URLs', () => {
  it('have a canonical form that is its own canonical form', () => {
    fc.assert(
      fc.property(url, (text) => {
        const parsed = parseFetchUrl(text)
        if (!parsed.ok) return
        const once = canonicalUrl(parsed.url)
        expect(canonicalUrl(once)).toBe(once)
        const again = parseFetchUrl(once)
        expect(again.ok && again.url.href).toBe(once)
      }),
      { numRuns: 500 },
    )
  })

  it('have a canonical form that means the same path', () => {
    fc.assert(
      fc.property(url, (text) => {
        const parsed = parseFetchUrl(text)
        if (!parsed.ok) return
        const decoded = (path: string): string =>
          path.replaceAll(/%[0-9a-f]{2}/gi, (triplet) => Buffer.from(triplet.slice(1), 'hex').toString('latin1'))
        expect(decoded(new URL(canonicalUrl(parsed.url)).pathname)).toBe(decoded(parsed.url.pathname))
      }),
      { numRuns: 300 },
    )
  })

  it('are parsed or refused with a reason, whatever the text is', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), text, url), (any) => {
        const parsed = parseFetchUrl(any)
        if (parsed.ok) {
          expect(parsed.url.hash).toBe('')
          expect(registrableDomain(parsed.url)).not.toBe('')
        } else expect(parsed.detail).not.toBe('')
      }),
      { numRuns: 500 },
    )
  })

  it('have one partition for a URL and its canonical form', () => {
    fc.assert(
      fc.property(url, fc.integer({ min: 1, max: 200 }), (text, count) => {
        const parsed = parseFetchUrl(text)
        if (!parsed.ok) return
        const partition = partitionFor(registrableDomain(parsed.url), count)
        expect(partition).toBe(partitionFor(registrableDomain(canonicalUrl(parsed.url)), count))
        expect(partition).toBeLessThan(count)
        expect(partition).toBeGreaterThanOrEqual(0)
      }),
      { numRuns: 200 },
    )
  })
})
