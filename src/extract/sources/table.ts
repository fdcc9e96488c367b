import type { AnyNode, Element } from 'domhandler'
import { nodeText } from './node-text.ts'

/** One row of a table, below its headings. */
export interface TableRow {
  readonly element: Element
  /** The cell under a heading, case and white space ignored, or by its number from 1. One that spans is that of each of its places. */
  cell(column: string | number): Element | undefined
}

/** What a page may cost: cells that span a thousand columns and rows each are no table. */
const MAX_COLUMNS = 1_000
const MAX_ROWSPAN = 65_534
const MAX_PLACES = 500_000

/**
 * Rows of a table as a reader sees them. Headings are the rows of `thead`, else those at the top that have nothing but `th`, else the
 * first row, unless nobody asks for a heading (`needsHeadings`) and it has nothing but `td`; a row of nothing but `th` further down is a
 * heading too. A table within a cell has its own rows. Errors: thrown for a table without end, which would lose rows.
 */
export function tableRows(table: Element, needsHeadings: boolean): TableRow[] {
  const rows = gridOf(table)
  const count = headingCount(rows, needsHeadings)
  const columns = headingsOf(rows.slice(0, count))
  return rows
    .slice(count)
    .filter(({ own }) => own.some(({ name }) => name === 'td'))
    .map(({ element, places }) => ({
      element,
      cell: (column) => places[typeof column === 'number' ? column - 1 : (columns.get(normal(column)) ?? -1)],
    }))
}

interface GridRow {
  readonly element: Element
  readonly own: readonly Element[]
  /** Cell at each place; one that spans stands at several. */
  readonly places: readonly (Element | undefined)[]
}

/** A cell that reaches into the rows below. */
interface Span {
  readonly cell: Element
  rowsLeft: number
}

/** Source: HTML standard, "Forming a table"; spans end with their group of rows. */
function gridOf(table: Element): GridRow[] {
  let placesLeft = MAX_PLACES
  let group: AnyNode | null = null
  let spans: (Span | undefined)[] = []
  return rowsOf(table).map((element) => {
    if (element.parent !== group) spans = []
    group = element.parent
    const own = element.children.filter(isCell)
    const places: (Element | undefined)[] = []
    let next = 0
    const end = (): boolean => next >= own.length && places.length >= spans.length
    while (!end() && places.length < MAX_COLUMNS) {
      const span = spans[places.length]
      const cell = own[next]
      if (span !== undefined && span.rowsLeft > 0) {
        span.rowsLeft -= 1
        places.push(span.cell)
      } else if (cell === undefined) places.push(undefined)
      else {
        next += 1
        const rowsLeft = spanOf(cell.attribs.rowspan, MAX_ROWSPAN) - 1
        const columns = Math.min(spanOf(cell.attribs.colspan, MAX_COLUMNS), MAX_COLUMNS - places.length)
        for (let column = 0; column < columns; column += 1) {
          spans[places.length] = { cell, rowsLeft }
          places.push(cell)
        }
      }
    }
    placesLeft -= places.length
    if (placesLeft < 0) throw new Error(`the table has more than ${MAX_PLACES} cells`)
    return { element, own, places }
  })
}

function rowsOf(table: Element): Element[] {
  return table.children.flatMap((child) => {
    if (!isElement(child)) return []
    if (child.name === 'tr') return [child]
    return child.name === 'thead' || child.name === 'tbody' || child.name === 'tfoot' ? child.children.filter(isRow) : []
  })
}

function headingCount(rows: readonly GridRow[], needsHeadings: boolean): number {
  const after = (isHeading: (row: GridRow) => boolean): number => {
    const first = rows.findIndex((row) => !isHeading(row))
    return first === -1 ? rows.length : first
  }
  const inHead = after(({ element }) => element.parent !== null && 'name' in element.parent && element.parent.name === 'thead')
  if (inHead > 0) return inHead
  const onlyTh = after(({ own }) => own.length > 0 && own.every(({ name }) => name === 'th'))
  if (onlyTh > 0) return onlyTh
  const isData = !needsHeadings && rows[0]?.own.every(({ name }) => name === 'td')
  return isData ? 0 : Math.min(1, rows.length)
}

/** Place of each heading. Shape: of several rows each one's text counts, and all of them joined; the first column of a name is it. */
function headingsOf(rows: readonly GridRow[]): ReadonlyMap<string, number> {
  const columns = new Map<string, number>()
  const width = rows.reduce((most, { places }) => Math.max(most, places.length), 0)
  const lowest = rows.toReversed()
  for (let place = 0; place < width; place += 1) {
    const cells = [...new Set(rows.flatMap(({ places }) => places[place] ?? []))]
    const joined = normal(cells.map((cell) => nodeText(cell)).join(' '))
    if (joined !== '' && !columns.has(joined)) columns.set(joined, place)
  }
  // A heading over several columns names the first of them, unless a lower one has the same name.
  for (const { places } of lowest) {
    places.forEach((cell, place) => {
      const text = cell === undefined ? '' : normal(nodeText(cell))
      if (text !== '' && !columns.has(text)) columns.set(text, place)
    })
  }
  return columns
}

function normal(heading: string): string {
  return heading.replace(/\s+/g, ' ').trim().toLowerCase()
}

/** Shape: 1 for what is no span; 0, which is the rest of the group, as the maximum. */
function spanOf(text: string | undefined, max: number): number {
  const span = Number.parseInt(text ?? '1', 10)
  if (span === 0 && max === MAX_ROWSPAN) return max
  return Number.isNaN(span) || span < 1 ? 1 : Math.min(span, max)
}

function isCell(node: AnyNode): node is Element {
  return isElement(node) && (node.name === 'td' || node.name === 'th')
}

function isRow(node: AnyNode): node is Element {
  return isElement(node) && node.name === 'tr'
}

function isElement(node: AnyNode): node is Element {
  return 'attribs' in node
}
