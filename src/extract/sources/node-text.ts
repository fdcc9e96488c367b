import type { AnyNode, ParentNode } from 'domhandler'
import { PLAIN_TEXT } from '../values/value-type.ts'

/** Their source is no text of the page. Selected itself, each of them gives its text all the same. */
export const DROPPED: ReadonlySet<string> = new Set(['script', 'style', 'noscript', 'template'])

/** Elements whose edges are a white space when a page is read: `a<br>b` and `<p>a</p><p>b</p>` are two words each. */
export const BREAKING: ReadonlySet<string> = new Set(
  (
    'address article aside blockquote br caption center dd details dialog dir div dl dt fieldset figcaption figure footer form ' +
    'h1 h2 h3 h4 h5 h6 header hr legend li main menu nav ol optgroup option p pre section summary table tbody td tfoot th thead tr ul'
  ).split(' '),
)

/**
 * Text of a node as a reader sees it, white space collapsed; scripts, styles and what stands for browsers without scripts are left out, and
 * so are the elements of `others`, which are records of their own; `form` says what becomes of white space and of edges. Cost: one walk
 * without recursion, since a page may be nested as deep as it likes.
 */
export function nodeText(root: AnyNode, others?: ReadonlySet<AnyNode>, { collapse, edgeOf } = PLAIN_TEXT): string {
  let text = ''
  const edge = (name: string): string => `${BREAKING.has(name) ? ' ' : ''}${edgeOf?.(name) ?? ''}`
  let node: AnyNode | null = root
  while (node !== null) {
    const dropped: boolean = node !== root && 'name' in node && (DROPPED.has(node.name) || others?.has(node) === true)
    if (node.type === 'text') text += node.data
    else if ('name' in node) text += edge(node.name)
    const child: AnyNode | null = !dropped && 'children' in node ? (node.children[0] ?? null) : null
    node =
      child ??
      following(node, root, (element) => {
        if ('name' in element) text += edge(element.name)
      })
  }
  return collapse(text)
}

/** Text as it stands, nothing collapsed and nothing left out. */
export function rawText(root: ParentNode): string {
  let text = ''
  let node: AnyNode | null = root.children[0] ?? null
  while (node !== null) {
    if (node.type === 'text') text += node.data
    const child: AnyNode | null = 'children' in node ? (node.children[0] ?? null) : null
    node = child ?? following(node, root, () => undefined)
  }
  return text
}

/** Next node in document order that is not below `node`; null behind the last one of `root`. `onLeave` sees each element that ends. */
function following(node: AnyNode, root: AnyNode, onLeave: (element: ParentNode) => void): AnyNode | null {
  let at: AnyNode | null = node
  if ('children' in at && at.children.length > 0) onLeave(at)
  while (at !== null && at !== root) {
    if (at.next !== null) return at.next
    at = at.parent
    if (at !== null && 'children' in at) onLeave(at)
  }
  return null
}
