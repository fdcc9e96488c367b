import type { Element } from 'domhandler'

/** Steps from the element upwards, at most: a path of more is read by nobody. */
const MAX_STEPS = 12

/**
 * A selector that leads to an element, for people: `#main > ul > li:nth-of-type(2)`. It begins at the nearest id above it, or at the body.
 * Shape: in a page that gives an id twice, or nests without end, it may lead to several.
 */
export function nodePath(element: Element): string {
  const steps: string[] = []
  let at: Element | undefined = element
  while (at !== undefined && steps.length < MAX_STEPS) {
    const { id } = at.attribs
    if (id !== undefined && /^[A-Za-z_][\w-]*$/.test(id)) return [`#${id}`, ...steps].join(' > ')
    steps.unshift(`${escaped(at.name)}${position(at)}`)
    // What is above the body is that of every page.
    if (at.name === 'body') break
    at = parentOf(at)
  }
  return steps.join(' > ')
}

function position(element: Element): string {
  const name = element.name
  let before = 0
  for (let at = element.prev; at !== null; at = at.prev) if ('attribs' in at && at.name === name) before += 1
  let isOnly = before === 0
  for (let at = element.next; at !== null && isOnly; at = at.next) if ('attribs' in at && at.name === name) isOnly = false
  return isOnly ? '' : `:nth-of-type(${before + 1})`
}

function parentOf({ parent }: Element): Element | undefined {
  return parent !== null && 'attribs' in parent ? parent : undefined
}

function escaped(name: string): string {
  return name.replace(/[^\w-]/g, '\\$&')
}
