import { describe, expect, it } from 'vitest'
import { MAX_URL_LENGTH, parseFetchUrl } from '../../../src/url/parse-url.ts'

const href = (text: string, base?: string): string => {
  const parsed = parseFetchUrl(text, base === undefined ? undefined : new URL(base))
  return parsed.ok ? parsed.url.href : `refused: ${parsed.reason}`
}

describe('a URL that is to be fetched', () => {
  it('is serialised as WHATWG does, without its fragment, and keeps the order of its query', () => {
    expect(href('https://EXAMPLE.test:443/p?b=2&a=1#top')).toBe('https://example.test/p?b=2&a=1')
  })

  it('C011: may have characters that RFC 3986 does not know', () => {
    expect(href('http://example.test/search?q=top-1||60|1&Fr=4')).toBe('http://example.test/search?q=top-1||60|1&Fr=4')
    expect(href('http://example.test/a b?c d')).toBe('http://example.test/a%20b?c%20d')
  })

  it('C005: loses white space around it and line breaks in it', () => {
    expect(href(' \n http://b.example.test/a\n ', 'http://example.test/?post=1')).toBe('http://b.example.test/a')
    expect(href('http://b.example\n.test/a')).toBe('http://b.example.test/a')
  })

  it('C013: may hold lone percent signs', () => {
    expect(href('/"%url%/"', 'http://example.test/')).toBe('http://example.test/%22%url%/%22')
  })

  it('is resolved against a base', () => {
    expect(href('../x?y', 'https://example.test/a/b/c')).toBe('https://example.test/a/x?y')
    expect(href('', 'https://example.test/a#b')).toBe('https://example.test/a')
  })

  it.each([
    ['', 'empty'],
    ['  ', 'empty'],
    ['example.test/a', 'not-absolute'],
    ['//example.test/', 'not-absolute'],
    ['http://', 'invalid'],
    ['http://exa mple.test/', 'invalid'],
    ['https://[::1/', 'invalid'],
    ['http://example.test:99999/', 'invalid'],
    ['ftp://example.test/', 'unsupported-scheme'],
    ['javascript:alert(1)', 'unsupported-scheme'],
    ['data:text/html,x', 'unsupported-scheme'],
    ['http://user:secret@example.test/', 'credentials'],
    ['http://user@example.test/', 'credentials'],
    ['http://../', 'no-host'],
    ['http://.example.test/', 'invalid'],
    ['http://a..example.test/', 'invalid'],
    ['http://example.test../', 'invalid'],
    [`http://${'a.'.repeat(123)}test.example/`, 'invalid'],
    [`http://${'a'.repeat(64)}.example/`, 'invalid'],
    [`http://example.test/${'a'.repeat(MAX_URL_LENGTH)}`, 'too-long'],
    [`http://example.test/${'é'.repeat(MAX_URL_LENGTH / 4)}`, 'too-long'],
  ])('%.40j is refused as %s', (text, reason) => {
    expect(href(text)).toBe(`refused: ${reason}`)
  })

  it('is refused without telling its credentials', () => {
    const parsed = parseFetchUrl('http://user:secret@example.test/a')
    expect(parsed).toMatchObject({ ok: false, detail: expect.stringContaining('http://example.test/a') })
    expect(JSON.stringify(parsed)).not.toContain('secret')
  })

  it.each([
    'http://user:secret@exa mple.test/',
    'ftp://user:secret@example.test/',
    'http:user:secret@example.test:99999/',
    ' https://user:se@secret@[::1/',
    '//user:secret@example.test/',
    'ht\ntp://user:secret@exa mple.test/',
    'http:/\t/us\ner:secret@exa mple.test/',
    '\u0001\u001f http://user:secret@exa mple.test/',
    `http://user:secret@example.test/${'a'.repeat(MAX_URL_LENGTH)}`,
  ])('is refused without them whatever else is wrong with it: %.60j', (text) => {
    expect(JSON.stringify(parseFetchUrl(text))).not.toContain('secret')
  })

  it('may have labels of 63 characters', () => {
    expect(href(`http://${'a'.repeat(63)}.example/`)).toBe(`http://${'a'.repeat(63)}.example/`)
  })

  it('may have an address of somebody in its path', () => {
    expect(href('http://example.test/@user/a@b?c=d@e')).toBe('http://example.test/@user/a@b?c=d@e')
    expect(parseFetchUrl('mailto:a@b.example')).toMatchObject({ text: 'mailto:a@b.example' })
  })

  it('is refused with a short detail however long it is', () => {
    const parsed = parseFetchUrl('x'.repeat(1_000_000))
    expect(parsed.ok ? '' : parsed.detail).toHaveLength(201 + 2 + " can't be fetched; expected at most 8192 characters".length)
  })
})
