import { BREAKING, DROPPED } from '../sources/node-text.ts'
import { edgeBetween } from '../values/split-number.ts'
import { PLAIN_TEXT } from '../values/value-type.ts'
import type { NativeNode } from './native-parser.ts'

/** Markup of an element that makes the text of what is around it more than its texts joined. */
const STRUCTURE = new RegExp(`</?(?:${[...BREAKING, ...DROPPED].join('|')})[\\s/>]`, 'i')

/**
 * `nodeText` of a node of the native parser. Most elements hold no more than text and inline markup, and theirs is what the library
 * gives at once; the others are walked, node by node.
 */
export function nativeText(root: NativeNode, { collapse, hasEdges } = PLAIN_TEXT): string {
  if (root.firstElementChild === null || (!hasEdges && !STRUCTURE.test(root.innerHTML))) return collapse(root.textContent)
  return collapse(walkedText(root, hasEdges))
}

/** No recursion: a page may be nested deeply. A string on the stack is text that comes behind what lies above it. */
function walkedText(root: NativeNode, hasEdges: boolean): string {
  let text = ''
  // As in `nodeText`.
  let last = ''
  let isEdge = false
  const append = (piece: string): void => {
    if (piece === '') return
    text += piece
    last = piece
  }
  const add = (data: string): void => {
    if (data === '') return
    if (hasEdges && isEdge) append(edgeBetween(last, data))
    isEdge = false
    append(data)
  }
  const waiting: (NativeNode | string)[] = root.childNodes.toReversed()
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (typeof next === 'string') {
      isEdge = true
      add(next)
    } else if (next.nodeType === 3) add(next.data ?? '')
    else if (next.nodeType === 1) {
      const name = next.localName ?? ''
      const breaks = BREAKING.has(name)
      if (name !== 'wbr') isEdge = true
      if (breaks) append(' ')
      if (DROPPED.has(name)) continue
      if (next.firstElementChild === null) {
        add(next.textContent)
        isEdge = name !== 'wbr' || isEdge
      } else {
        waiting.push(breaks ? ' ' : '')
        for (const child of next.childNodes.toReversed()) waiting.push(child)
        continue
      }
      if (breaks) append(' ')
    }
  }
  return text
}
