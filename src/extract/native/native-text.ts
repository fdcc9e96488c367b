import { BREAKING, DROPPED } from '../sources/node-text.ts'
import { PLAIN_TEXT, type TextForm } from '../values/value-type.ts'
import type { NativeNode } from './native-parser.ts'

/** Markup of an element that makes the text of what is around it more than its texts joined. */
const STRUCTURE = new RegExp(`</?(?:${[...BREAKING, ...DROPPED].join('|')})[\\s/>]`, 'i')

/**
 * `nodeText` of a node of the native parser. Most elements hold no more than text and inline markup, and theirs is what the library
 * gives at once; the others are walked, node by node.
 */
export function nativeText(root: NativeNode, { collapse, edgeOf } = PLAIN_TEXT): string {
  if (root.firstElementChild === null || (edgeOf === undefined && !STRUCTURE.test(root.innerHTML))) return collapse(root.textContent)
  return collapse(walkedText(root, edgeOf))
}

/** No recursion: a page may be nested deeply. A string on the stack is text that comes behind what lies above it. */
function walkedText(root: NativeNode, edgeOf: TextForm['edgeOf']): string {
  let text = ''
  const waiting: (NativeNode | string)[] = root.childNodes.toReversed()
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (typeof next === 'string') text += next
    else if (next.nodeType === 3) text += next.data ?? ''
    else if (next.nodeType === 1) {
      const name = next.localName ?? ''
      const edge = `${BREAKING.has(name) ? ' ' : ''}${edgeOf?.(name) ?? ''}`
      text += edge
      if (DROPPED.has(name)) continue
      if (next.firstElementChild === null) text += `${next.textContent}${edge}`
      else {
        waiting.push(edge)
        for (const child of next.childNodes.toReversed()) waiting.push(child)
      }
    }
  }
  return text
}
