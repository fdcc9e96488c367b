import type { AnyNode, ParentNode } from 'domhandler'

const HTML = 'http://www.w3.org/1999/xhtml'
const NAMED: Readonly<Record<string, string>> = {
  'http://www.w3.org/1999/xlink': 'xlink:',
  'http://www.w3.org/XML/1998/namespace': 'xml:',
}
const XMLNS = 'http://www.w3.org/2000/xmlns/'
const VOID: ReadonlySet<string> = new Set(
  'area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr'.split(' '),
)
/** Their text is no markup, so nothing in it is escaped. `noscript` is one of them for whoever runs scripts, as the parser does. */
const UNESCAPED: ReadonlySet<string> = new Set('style script xmp iframe noembed noframes plaintext noscript'.split(' '))
const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', '\u00a0': '&nbsp;' }

/**
 * HTML inside a node, as `innerHTML` gives it. Without recursion, since a page may be nested as deep as it likes.
 * Source: HTML standard, "Serializing HTML fragments".
 */
export function innerHtml(root: ParentNode): string {
  if ('name' in root && isVoid(root)) return ''
  let html = ''
  let node: AnyNode = root
  for (;;) {
    if (node !== root) html += opening(node)
    const child: AnyNode | undefined = 'children' in node && !('name' in node && isVoid(node)) ? node.children[0] : undefined
    if (child !== undefined) {
      node = child
      continue
    }
    while (node !== root) {
      html += closing(node)
      if (node.next !== null) break
      if (node.parent === null) return html
      node = node.parent
    }
    if (node === root || node.next === null) return html
    node = node.next
  }
}

function opening(node: AnyNode): string {
  if ('name' in node && 'attribs' in node) {
    let html = `<${node.name}`
    for (const name of Object.keys(node.attribs)) {
      html += ` ${attributeName(name, node['x-attribsNamespace']?.[name])}="${escaped(node.attribs[name] ?? '', /["&\u00a0]/g)}"`
    }
    return `${html}>`
  }
  if (node.type === 'text') {
    const { parent } = node
    const isPlain = parent !== null && 'name' in parent && UNESCAPED.has(parent.name) && isHtml(parent)
    return isPlain ? node.data : escaped(node.data, /[<>&\u00a0]/g)
  }
  if (node.type === 'comment') return `<!--${node.data}-->`
  return node.type === 'directive' && node.name.toLowerCase() === '!doctype' ? `<!DOCTYPE ${node['x-name'] ?? ''}>` : ''
}

function closing(node: AnyNode): string {
  return 'name' in node && 'attribs' in node && !isVoid(node) ? `</${node.name}>` : ''
}

function attributeName(name: string, namespace: string | undefined): string {
  if (namespace === undefined || namespace === '') return name
  if (namespace === XMLNS) return name === 'xmlns' ? name : `xmlns:${name}`
  return `${NAMED[namespace] ?? ''}${name}`
}

function isVoid(element: { readonly name: string; readonly namespace?: string }): boolean {
  return VOID.has(element.name) && isHtml(element)
}

function isHtml(element: { readonly namespace?: string }): boolean {
  return element.namespace === undefined || element.namespace === HTML
}

function escaped(text: string, characters: RegExp): string {
  return text.replace(characters, (character) => ENTITIES[character] ?? character)
}
