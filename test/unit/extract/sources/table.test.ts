import { describe, expect, it } from 'vitest'
import { fieldFrom } from '../../../support/extraction.ts'

const PLAN = '{ table: table, type: list, fields: { name: { column: Name }, price: { column: price, type: decimal, scale: 2 } } }'
const row = (name: string | null, price: string | null): unknown => ({ name, price })

describe('a table', () => {
  it('is a record per row, its cells found by their heading', () => {
    const html =
      '<table><thead><tr><th>Name<th> PRICE\n</thead><tbody><tr><td>A<td>1.00<tr><td>B<td><tr><th colspan=2>Old<tr><td>C<td>3,00 €</tbody></table>'
    expect(fieldFrom(PLAN, html)).toEqual([row('A', '1.00'), row('B', null), row('C', '3.00')])
  })

  it('has its headings in its first row where nothing says so', () => {
    expect(fieldFrom(PLAN, '<table><tr><td>Name<td>Price<tr><td>A<td>1</table>')).toEqual([row('A', '1.00')])
    expect(fieldFrom(PLAN, '<table><tr><th>Price<th>Name<tr><th>1<td>A</table>')).toEqual([row('A', '1.00')])
  })

  it('has no headings where its first row is data and nobody asks for one', () => {
    const numbers = '{ table: table, type: list, fields: { name: { column: 1 }, price: { any: [{ column: 2 }] } } }'
    const plain = '<table><tr><td>A<td>1<tr><td>B<td>2</table>'
    expect(fieldFrom(numbers, plain)).toEqual([row('A', '1'), row('B', '2')])
    expect(fieldFrom(numbers, '<table><tr><th>Name<th>Price<tr><td>A<td>1</table>')).toEqual([row('A', '1')])
    expect(fieldFrom(numbers, '<table><thead><tr><td>Name<td>Price</thead><tr><td>A<td>1</table>')).toEqual([row('A', '1')])
    const mixed = '{ table: table, type: list, fields: { name: { column: 1 }, price: { column: 2, when: { column: A } } } }'
    expect(fieldFrom(mixed, plain)).toEqual([row('B', '2')])
  })

  it('follows cells that span rows and columns', () => {
    const html =
      '<table><tr><th rowspan=2>Name<th colspan=2>Cost<tr><th>Net<th>Price<tr><td rowspan=2>A<td>1<td>2<tr><td>3<td>4<tr><td>B<td colspan=2>5</table>'
    expect(fieldFrom(PLAN, html)).toEqual([row('A', '2.00'), row('A', '4.00'), row('B', '5.00')])
    const joined = '{ table: table, type: list, fields: { net: { column: Cost Net } } }'
    expect(fieldFrom(joined, html)).toEqual([{ net: '1' }, { net: '3' }, { net: '5' }])
  })

  it('gives cells by number, what is in them, and the row itself', () => {
    const field =
      '{ table: main, type: list, fields: { url: { column: 1, select: a@href, type: url }, id: { select: "@id" }, deep: { column: Name, select: i } } }'
    expect(fieldFrom(field, '<main><table><tr><th>Name<tr id=r1><td><a href=/a>A</a> <i>x</i></table></main>')).toEqual([
      { url: 'http://shop.example.test/a', id: 'r1', deep: 'x' },
    ])
  })

  it('keeps the rows of a table within a cell apart', () => {
    const html = '<table><tr><th>Name<th>Price<tr><td>A <table><tr><td>Name<td>Price<tr><td>inner<td>9</table><td>1</table>'
    expect(fieldFrom(PLAN, html)).toEqual([row('A Name Price inner 9', '1.00')])
  })

  it('has all of its rows, or fails the page', () => {
    const last = '{ table: table, type: list, fields: { last: { column: 1000 } } }'
    expect(fieldFrom(last, `<table>${`<tr>${'<td>x'.repeat(1_000)}`.repeat(260)}</table>`)).toHaveLength(260)
    expect(() => fieldFrom(last, `<table>${'<tr><td colspan=1000>x'.repeat(501)}</table>`)).toThrow('the table has more than 500000 cells')
  })

  it('without end costs a bounded time', () => {
    const html = `<table><tr><th>Name${'<tr><td rowspan=65534 colspan=1000>x'.repeat(300)}</table>`
    expect(fieldFrom('{ table: table, type: list, fields: { name: { column: name } } }', html)).toHaveLength(300)
  })
})
