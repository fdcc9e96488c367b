/** Text for people: tables that fit 80 columns, counts and times that can be read. Pure. */

import type { TopicPartition } from '../kernel/brand.ts'
import { wellFormedJson } from '../kernel/well-formed-json.ts'
import { terminalLine } from './terminal-text.ts'

const WIDTH = 80

export interface Column {
  readonly title: string
  readonly align?: 'left' | 'right'
  /** May be cut to fit; the others are shown whole. */
  readonly flexible?: boolean
  /** Goes on in the next line where it does not fit, whole: reasons that nobody could guess the end of. */
  readonly wraps?: boolean
}

/**
 * A table without lines, two spaces between columns. Flexible columns share what is left of the width and are cut with `…`, or go on below.
 */
export function renderTable(columns: readonly Column[], rows: readonly (readonly string[])[], width = WIDTH): string {
  const natural = columns.map((column, index) =>
    rows.reduce((most, row) => Math.max(most, displayLength(row[index] ?? '')), column.title.length),
  )
  const flexible = columns.flatMap((column, index) => (column.flexible === true || column.wraps === true ? [index] : []))
  const fixed = natural.reduce((sum, size, index) => sum + (flexible.includes(index) ? 0 : size), 0) + 2 * (columns.length - 1)
  const widths = [...natural]
  let left = Math.max(flexible.length * 8, width - fixed)
  for (const [position, index] of [...flexible].sort((a, b) => (natural[a] ?? 0) - (natural[b] ?? 0)).entries()) {
    const share = Math.min(natural[index] ?? 0, Math.floor(left / (flexible.length - position)))
    widths[index] = share
    left -= share
  }
  const line = (cells: readonly string[]): string =>
    columns
      .map((column, index) => pad(cells[index] ?? '', widths[index] ?? 0, column.align ?? 'left'))
      .join('  ')
      .trimEnd()
  const linesOf = (cells: readonly string[]): string[] => {
    const parts = columns.map(({ wraps }, index) => {
      const [cell, size] = [cells[index] ?? '', widths[index] ?? 0]
      return wraps === true ? wrap(cell, size) : [cut(cell, size)]
    })
    const height = Math.max(...parts.map(({ length }) => length))
    return Array.from({ length: height }, (_, row) => line(parts.map((part) => part[row] ?? '')))
  }
  return [columns.map((column) => column.title), ...rows].flatMap(linesOf).join('\n')
}

/** Breaks between words, and within one that is wider than a line. */
function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line: string[] = []
  for (const word of terminalLine(text).trim().split(' ')) {
    let rest = [...word]
    if (line.length > 0 && line.length + 1 + rest.length > width) {
      lines.push(line.join(''))
      line = []
    }
    if (line.length > 0) line.push(' ')
    while (rest.length > width) {
      lines.push(rest.slice(0, width).join(''))
      rest = rest.slice(width)
    }
    line.push(...rest)
  }
  return [...lines, line.join('')]
}

function displayLength(text: string): number {
  return [...terminalLine(text)].length
}

function cut(text: string, width: number): string {
  const characters = [...terminalLine(text)]
  return characters.length <= width ? characters.join('') : `${characters.slice(0, Math.max(0, width - 1)).join('')}…`
}

function pad(text: string, width: number, align: 'left' | 'right'): string {
  const space = ' '.repeat(Math.max(0, width - displayLength(text)))
  return align === 'right' ? space + text : text + space
}

/** 1234567 -> `1,234,567`. */
export function renderCount(count: number | bigint): string {
  return count.toString().replaceAll(/\B(?=(\d{3})+(?!\d))/g, ',')
}

/** `1 URL`, `2 URLs`. */
export function counted(count: number | bigint, noun: string): string {
  return `${renderCount(count)} ${noun}${BigInt(count) === 1n ? '' : 's'}`
}

/** 1536 -> `1.5 KiB`. */
export function renderBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let value = bytes
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit += 1
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`
}

/** Where a message lies. */
export function renderPlace({ topic, partition, offset }: TopicPartition & { readonly offset: bigint | number }): string {
  return `${topic}/${partition} offset ${offset}`
}

/** JSON with what JSON has no word for: bigint as text, Buffer as base64. No control character is in it. */
export function toJson(value: unknown): string {
  const json = JSON.stringify(value, (_, inner: unknown) => {
    if (typeof inner === 'bigint') return inner.toString()
    if (isBufferJson(inner)) return Buffer.from(inner.data).toString('base64')
    return inner
  })
  return wellFormedJson(json)
}

/** Buffers reach the replacer already turned into `{type: 'Buffer', data: [...]}`. */
function isBufferJson(value: unknown): value is { type: 'Buffer'; data: number[] } {
  return (
    typeof value === 'object' &&
    value !== null &&
    (value as { type?: unknown }).type === 'Buffer' &&
    Array.isArray((value as { data?: unknown }).data)
  )
}
