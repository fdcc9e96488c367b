import { describe, expect, it } from 'vitest'
import { renderBytes, renderCount, renderTable, toJson } from '../../../src/cli/render.ts'
import { terminalLine, terminalText } from '../../../src/cli/terminal-text.ts'

describe('a table', () => {
  it('is as wide as its content, two spaces between columns, numbers to the right', () => {
    const table = renderTable(
      [{ title: 'NAME' }, { title: 'COUNT', align: 'right' }],
      [
        ['html', '1,200'],
        ['a longer name', '3'],
      ],
    )
    expect(table.split('\n')).toEqual(['NAME           COUNT', 'html           1,200', 'a longer name      3'])
  })

  it('cuts flexible columns to fit 80 columns and shows the others whole', () => {
    const table = renderTable([{ title: 'KEY', flexible: true }, { title: 'CODE' }], [['x'.repeat(200), 'MESSAGE_FRAMING_UNKNOWN']])
    const [, row = ''] = table.split('\n')
    expect(row).toHaveLength(80)
    expect(row).toMatch(/^x+… {2}MESSAGE_FRAMING_UNKNOWN$/)
  })

  it('gives what a short flexible column does not need to a long one', () => {
    const table = renderTable(
      [
        { title: 'A', flexible: true },
        { title: 'B', flexible: true },
      ],
      [['ab', 'y'.repeat(100)]],
    )
    expect(table.split('\n')[1]).toBe(`ab  ${'y'.repeat(75)}…`)
  })

  it('lets a column that wraps go on below, between words, and cuts nothing of it', () => {
    const why = 'null, since .when: "03/04/2008" is no date in a form that says which of its numbers is the month'
    const rows = [
      ['when', why],
      ['path', 'x'.repeat(80)],
      ['short', 'h1'],
    ]
    const lines = renderTable([{ title: 'FIELD' }, { title: 'WHY', wraps: true }], rows).split('\n')
    expect(lines.every((line) => line.length <= 80)).toBe(true)
    expect(
      lines
        .slice(1, 3)
        .map((line) => line.slice(7))
        .join(' '),
    ).toBe(why)
    expect(lines.slice(3, 5)).toEqual([`path   ${'x'.repeat(73)}`, `       ${'x'.repeat(7)}`])
    expect(lines[5]).toBe('short  h1')
  })

  it('counts characters, not code units, and keeps a cell on one line', () => {
    const table = renderTable([{ title: 'T' }, { title: 'U' }], [['🚀\n🚀', 'b']])
    expect(table.split('\n')).toEqual(['T    U', '🚀 🚀  b'])
  })

  it('has its titles when there are no rows, and empty cells for missing ones', () => {
    expect(renderTable([{ title: 'A' }, { title: 'B' }], [])).toBe('A  B')
    expect(renderTable([{ title: 'A' }, { title: 'B' }], [['1']])).toBe('A  B\n1')
  })
})

describe('numbers for people', () => {
  it.each([
    [0, '0'],
    [999, '999'],
    [1000, '1,000'],
    [1234567n, '1,234,567'],
    [-12345, '-12,345'],
  ])('count %s is %s', (count, text) => expect(renderCount(count)).toBe(text))

  it.each([
    [0, '0 B'],
    [1023, '1023 B'],
    [1536, '1.5 KiB'],
    [10 * 1024 ** 3, '10.0 GiB'],
  ])('%s bytes are %s', (bytes, text) => expect(renderBytes(bytes)).toBe(text))
})

describe('JSON', () => {
  it('writes offsets beyond any number as text, and bytes as base64, at any depth', () => {
    expect(toJson({ offset: 2n ** 60n, inner: [{ bytes: Buffer.from('hi') }], no: null })).toBe(
      '{"offset":"1152921504606846976","inner":[{"bytes":"aGk="}],"no":null}',
    )
  })

  it('has no half of a surrogate pair, which jq refuses with the whole document', () => {
    expect(toJson({ '\ud800': 'a\ud83d', b: '\u{1f600}\udc00' })).toBe('{"\ufffd":"a\ufffd","b":"\u{1f600}\ufffd"}')
    expect(toJson(['\\ud800', '\\\ud800'])).toBe('["\\\\ud800","\\\\\ufffd"]')
  })
})

describe('text for a terminal', () => {
  const steering = 'a\x1b]0;owned\x07b\x9b2Jc\rd\x7f'

  it('holds no control character but line ends and tabs', () => {
    expect(terminalText(`${steering}\n\te`)).toBe('a\ufffd]0;owned\ufffdb\ufffd2Jc\ufffdd\ufffd\n\te')
    expect(terminalLine(`${steering}\n\te`)).toBe('a\ufffd]0;owned\ufffdb\ufffd2Jc d\ufffd e')
  })

  it('is JSON as it is', () => {
    const value = { text: `${steering}\u0085 ü 🚀`, [steering]: [1n] }
    expect(terminalText(toJson(value))).toBe(toJson(value))
    expect(JSON.parse(toJson(value))).toEqual({ text: value.text, [steering]: ['1'] })
  })
})
