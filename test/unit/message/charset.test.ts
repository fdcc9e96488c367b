import sniff from 'html-encoding-sniffer'
import { describe, expect, it } from 'vitest'
import { decideCharset, decodeText, withEncodedQuery } from '../../../src/message/charset.ts'
import { parseContentType } from '../../../src/message/content-type.ts'
import { growth } from '../../support/growth.ts'

const bytes = (...parts: (string | { hex: string })[]): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from(part.hex, 'hex'))))
const read = (body: Buffer, contentType: string | null): [string, string, string] => {
  const { charset, source } = decideCharset(body, contentType)
  return [decodeText(body, charset), charset, source]
}

describe('the charset of a body', () => {
  it('C070: is that of its byte order mark before all, which is no part of the text', () => {
    expect(read(bytes({ hex: 'efbbbfd09fd180d0b8d0b2d0b5d182' }), 'text/html; charset=windows-1251')).toEqual(['Привет', 'UTF-8', 'bom'])
    expect(read(bytes({ hex: 'fffe41003404' }), 'text/html')).toEqual(['Aд', 'UTF-16LE', 'bom'])
  })

  it('C072: is that of the header, else of the page', () => {
    expect(read(bytes({ hex: '93fa967b' }), 'text/html; charset=Shift_JIS')).toEqual(['日本', 'Shift_JIS', 'header'])
    const page = bytes('<meta charset="windows-1251">', { hex: 'd6e5ede0' })
    expect(read(page, 'text/html')).toEqual(['<meta charset="windows-1251">Цена', 'windows-1251', 'meta'])
    expect(read(page, null)[2]).toBe('meta')
  })

  it('C074: is not looked for in the content of JSON or plain text', () => {
    const json = '{"h":"<meta charset=gbk>","n":"café"}'
    expect(read(bytes(json), 'application/json')).toEqual([json, 'UTF-8', 'utf8-valid'])
    expect(read(bytes('<meta charset=gbk>é'), 'text/plain')[1]).toBe('UTF-8')
  })

  it('C076: falls through a label that names no encoding, and takes odd forms as they are meant', () => {
    expect(read(bytes('<meta charset=koi8-r>', { hex: 'f0d2c9d7c5d4' }), 'text/html; charset=utf8mb4')).toEqual([
      '<meta charset=koi8-r>Привет',
      'KOI8-R',
      'meta',
    ])
    // Of two fields the last one counts.
    expect(read(bytes({ hex: 'd6e5' }), 'text/html; charset=koi8-r, text/html; charset=windows-1251')[1]).toBe('windows-1251')
    for (const header of [
      'charset="utf-8"',
      "charset='utf-8'",
      'charset=utf-8;',
      'CHARSET = UTF8',
      'charset="utf-8',
      'charset=utf8mb4; charset=utf-8',
    ]) {
      expect([header, ...read(bytes({ hex: 'e9' }), `text/html; ${header}`)]).toEqual([header, '�', 'UTF-8', 'header'])
    }
    expect(read(bytes('a'), 'text/html; charset=iso-2022-kr')[2]).toBe('utf8-valid')
    expect(read(bytes({ hex: 'a4' }), 'text/html; charset=iso-8859-16')[0]).toBe('€')
  })

  it('C078: decodes characters that are split between chunks, once they are one body', () => {
    const body = Buffer.concat([Buffer.from('e4bda0e5', 'hex'), Buffer.from('a5bd', 'hex')])
    expect(read(body, 'text/plain')[0]).toBe('你好')
  })

  it('is UTF-8 where the bytes are, a character cut at the end included, else windows-1252 with its quotes', () => {
    expect(read(bytes('caf', { hex: 'c3a9e4bd' }), 'text/html').slice(1)).toEqual(['UTF-8', 'utf8-valid'])
    expect(read(bytes({ hex: '93616294' }), 'text/html')).toEqual(['“ab”', 'windows-1252', 'default'])
    expect(read(bytes('caf', { hex: 'e9' }, ' ol'), 'text/html')).toEqual(['café ol', 'windows-1252', 'default'])
    expect(read(Buffer.alloc(0), 'text/html')).toEqual(['', 'UTF-8', 'utf8-valid'])
  })

  it('is that of an XML declaration', () => {
    const xml = bytes('<?xml version="1.0" encoding="ISO-8859-2"?><a>', { hex: 'b1' }, '</a>')
    for (const type of ['text/xml', 'application/xml', 'application/rss+xml', 'application/xhtml+xml', 'text/html', null]) {
      expect([type, ...read(xml, type).slice(1)]).toEqual([type, 'ISO-8859-2', 'meta'])
    }
    expect(read(xml, 'text/plain')[1]).toBe('windows-1252')
    expect(read(bytes('<?xml version="1.0" encoding="UTF-16"?><a/>'), 'text/xml')[1]).toBe('UTF-8')
  })

  it('is found where the declaration stands late, but not in a script', () => {
    const late = (before: string): Buffer => bytes('<html><head>', before, '<meta charset=koi8-r>', { hex: 'f0' })
    expect(read(late(`<title>${'x'.repeat(3_000)}</title>`), 'text/html')[1]).toBe('KOI8-R')
    expect(read(late(`<script>${'x'.repeat(1_500)}"<meta charset=gbk>"</script>`), 'text/html')[1]).toBe('KOI8-R')
    expect(read(bytes('<html><head>', 'x'.repeat(2_000), '<body><p><meta charset=gbk>', { hex: 'e9' }), 'text/html')[1]).toBe(
      'windows-1252',
    )
  })

  it('never throws on a declaration that is cut or odd', () => {
    const pages = [
      '<meta http-equiv=content-type content="text/html; charset">',
      '<meta http-equiv=content-type content="charset=">',
      '<meta content="about charset"><meta charset=koi8-r>',
      '<meta charset',
      '<meta charset="koi8-r',
      '<!--',
      '<!-- <meta charset=gbk> --><meta charset=koi8-r>',
      '<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">',
      '<meta content="text/html; charset=koi8-r">',
      '<meta charset=utf-16>',
      '<meta charset=x-user-defined>',
      '<p title="<meta charset=gbk>"><meta/charset=koi8-r>',
      `<p ${'a '.repeat(8_000)}`,
      '<'.repeat(16_384),
      '<meta '.repeat(2_700),
    ]
    const charsets = pages.map((page) => decideCharset(bytes(page, { hex: 'e9' }), 'text/html').charset)
    const plain = 'windows-1252'
    expect(charsets).toEqual([
      plain,
      plain,
      'KOI8-R',
      plain,
      plain,
      plain,
      'KOI8-R',
      'KOI8-R',
      plain,
      'UTF-8',
      plain,
      'KOI8-R',
      plain,
      plain,
      plain,
    ])
  })

  it('agrees with the sniffer of browsers on declarations in the first bytes', () => {
    const attributes = [
      'charset=koi8-r',
      'charset="big5"',
      "CHARSET='gbk'",
      'http-equiv=content-type',
      'content="text/html;charset=sjis"',
      'x',
      'charset=none',
      '/',
      '=',
    ]
    const before = ['', '<!doctype html>', '<html lang=en>', '<!-- c -->', '</p>', '<?php x ?>', '<title>t</title>', 'text < 5']
    let compared = 0
    for (const first of before) {
      for (const a of attributes) {
        for (const b of attributes) {
          const page = bytes(`${first}<meta ${a} ${b}>`, { hex: 'e9' })
          expect([page.toString('latin1'), decideCharset(page, 'text/html').charset]).toEqual([page.toString('latin1'), sniff(page)])
          compared++
        }
      }
    }
    expect(compared).toBe(before.length * attributes.length ** 2)
  })

  it('that another program wrote and nobody knows is decided anew', () => {
    expect(decodeText(bytes('é'), 'klingon')).toBe('é')
    expect(decodeText(bytes({ hex: 'e9' }), null)).toBe('é')
  })
})

describe('the query of a reference', () => {
  const written = (reference: string, charset: string | null): string =>
    new URL(withEncodedQuery(reference, charset), 'http://a.test/').href.replace('http://a.test/', '')

  // As browsers write them.
  it.each([
    ['windows-1251', '?q=тест', '?q=%F2%E5%F1%F2'],
    ['windows-1251', 'т/?т&x=%20+a b\'"#т', '%D1%82/?%F2&x=%20+a%20b%27%22#%D1%82'],
    ['Shift_JIS', '?т', '?%84%84'],
    ['EUC-JP', ' ?a=あ\t\nb=あ ', '?a=%A4%A2b=%A4%A2'],
    ['ISO-2022-JP', '?あい#x', '?%1B$B$%22$$%1B(B#x'],
    ['gb18030', '?😀', '?%949%FC6'],
    ['iso-8859-1', '?€あ\ud800', '?%80%26%2312354%3B%26%2365533%3B'],
    ['utf-8', '?т', '?%D1%82'],
    ['utf-16le', '?т', '?%D1%82'],
    ['klingon', '?т', '?%D1%82'],
    [null, '?т', '?%D1%82'],
    ['windows-1251', '#?т', '#?%D1%82'],
  ])('is in the encoding of its page: %s, %s', (charset, reference, expected) => {
    expect(written(reference, charset)).toBe(expected)
  })

  it('costs no more for many letters that an encoding lacks', () => {
    for (const charset of ['windows-1251', 'Shift_JIS']) {
      const write = (size: number): void => void withEncodedQuery(`?${'a😀'.repeat(size)}`, charset)
      // Four times as many are four times as much; the square of it is sixteen.
      expect(growth(write, 20_000)).toBeLessThan(8)
    }
  })
})

describe('a Content-Type', () => {
  it.each([
    [' Text/HTML ; charset=utf-8', 'text/html', ['utf-8']],
    ['text/html', 'text/html', []],
    ['', null, []],
    [null, null, []],
    ['charset=utf-8', null, []],
    ['html', null, []],
    ['text/html;charset=', 'text/html', []],
    ['text/html; boundary="; charset=a"', 'text/html', ['a"']],
    ['text/html, text/html; charset=gbk', 'text/html', ['gbk']],
    ['text/html; charset=gbk, text/html', 'text/html', ['gbk']],
    ['text/html; charset=gbk, text/html; charset=utf-8', 'text/html', ['utf-8', 'gbk']],
    ['text/html; charset=gbk, text/plain', 'text/plain', []],
    ['text/plain; charset=gbk, text/html; x="a,b"; charset=utf-8', 'text/html', ['utf-8']],
    ['text/html; charset=gbk, , */*; charset=utf-8, html', 'text/html', ['gbk', 'utf-8']],
    ['text/html, charset=gbk', 'text/html', ['gbk']],
  ])('%j has the essence %j', (header, essence, labels) => {
    expect(parseContentType(header)).toEqual({ essence, charsetLabels: labels })
  })

  it.each([';charset=a,', 'a/b;charset=a,', '"', ',"', ';charset '])('costs no more than its length: %j again and again', (text) => {
    expect(growth((count) => parseContentType(text.repeat(count)), 3_000)).toBeLessThan(9)
  })
})
