import type { AnyNode } from 'domhandler'
import { parseFragment } from 'parse5'
import { adapter } from 'parse5-htmlparser2-tree-adapter'
import { expect, it } from 'vitest'
import { nodeText } from '../../../../src/extract/sources/node-text.ts'
import { CHANGE, EDGE } from '../../../../src/extract/values/split-number.ts'
import { NUMBER_TEXT } from '../../../../src/extract/values/value-type.ts'
import { growth } from '../../../support/growth.ts'

const nodeOf = (html: string): AnyNode => parseFragment(html, { treeAdapter: adapter }) as unknown as AnyNode

it('the edges of elements are told between digits alone', () => {
  expect(nodeText(nodeOf('<b>1</b><b>2</b> <i>3</i><i>x</i>'), undefined, NUMBER_TEXT)).toBe(`1${EDGE}2 ${EDGE}3x`)
  expect(nodeText(nodeOf('<b>1</b> <b>299</b><br>5'), undefined, NUMBER_TEXT)).toBe(`1 ${EDGE}299 ${EDGE}5`)
  expect(nodeText(nodeOf('<del>20 €</del> <ins>15</ins> <s>x</s> €'), undefined, NUMBER_TEXT)).toBe(`20 € ${CHANGE}15 x €`)
})

it('a text of many elements costs no more than reading it', () => {
  const nodes = new Map([5_000, 20_000].map((size) => [size, nodeOf('<b>12</b><i>some words that stand between</i>'.repeat(size))]))
  const read = (size: number): void => {
    const node = nodes.get(size)
    if (node !== undefined) nodeText(node, undefined, NUMBER_TEXT)
  }
  // Four times as long is four times as much; the square of it is sixteen.
  expect(growth(read, 5_000)).toBeLessThan(8)
})
