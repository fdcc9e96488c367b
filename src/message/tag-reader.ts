import { type QuoteType, Tokenizer, type TokenizerCallbacks } from 'htmlparser2'

export interface TagHandler {
  /** Shape: names in lower case; of the attributes those that are asked for, entities decoded, the first of each name. */
  onOpen(name: string, attributes: ReadonlyMap<string, string>): void
  /** Also where nothing of that name is open. */
  onClose(name: string): void
}

/** Within these a tag may close itself (`<template/>`), and within those that stand in them for HTML it may not. */
const FOREIGN: ReadonlySet<string> = new Set(['svg', 'math'])
const INTEGRATION: ReadonlySet<string> = new Set('mi mo mn ms mtext annotation-xml foreignobject desc title'.split(' '))
const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map()

/**
 * Tags of a page, one after the other: no tree and no stack, for what runs beside everything else without a time limit. The library's own
 * parser keeps a stack of open elements in an array whose front is its top, so that what takes it grows with the square (a megabyte of
 * `<nobr>`: up to a minute); here each tag costs what it is long.
 *
 * The text may come in pieces. What stands in scripts, styles, titles and comments is no tag.
 */
export class TagReader implements TokenizerCallbacks {
  readonly #wanted: ReadonlySet<string>
  readonly #handler: TagHandler
  readonly #tokenizer: Tokenizer
  /** Pieces that a tag may still reach back into, and where the first of them begins. */
  readonly #pieces: string[] = []
  #begin = 0
  readonly #foreign: boolean[] = []
  #name = ''
  #attributes = NO_ATTRIBUTES
  /** Of the attribute that is being read; undefined where nobody asks for it. */
  #attribute: string | undefined
  #value = ''

  /** Shape: names of attributes in lower case. */
  constructor(wanted: readonly string[], handler: TagHandler) {
    this.#wanted = new Set(wanted)
    this.#handler = handler
    this.#tokenizer = new Tokenizer({ decodeEntities: true }, this)
  }

  write(text: string): void {
    this.#pieces.push(text)
    this.#tokenizer.write(text)
  }

  end(): void {
    this.#tokenizer.end()
  }

  /** What is open now is of `<svg>` or `<math>`, and no element of HTML. */
  get isForeign(): boolean {
    return this.#foreign.at(-1) === true
  }

  onopentagname(start: number, end: number): void {
    this.#name = this.#slice(start, end).toLowerCase()
    this.#attributes = NO_ATTRIBUTES
    if (FOREIGN.has(this.#name)) this.#foreign.push(true)
    else if (INTEGRATION.has(this.#name)) this.#foreign.push(false)
  }

  onattribname(start: number, end: number): void {
    const name = this.#slice(start, end).toLowerCase()
    this.#attribute = this.#wanted.has(name) && !this.#attributes.has(name) ? name : undefined
    this.#value = ''
  }

  onattribdata(start: number, end: number): void {
    if (this.#attribute !== undefined) this.#value += this.#slice(start, end)
  }

  onattribentity(codePoint: number): void {
    if (this.#attribute !== undefined) this.#value += String.fromCodePoint(codePoint)
  }

  onattribend(_quote: QuoteType): void {
    if (this.#attribute === undefined) return
    this.#attributes = new Map([...this.#attributes, [this.#attribute, this.#value]])
    this.#attribute = undefined
  }

  onopentagend(): void {
    this.#handler.onOpen(this.#name, this.#attributes)
  }

  onselfclosingtag(): void {
    const closes = this.#foreign.at(-1) === true
    this.#handler.onOpen(this.#name, this.#attributes)
    if (closes) this.#close(this.#name)
  }

  onclosetag(start: number, end: number): void {
    this.#close(this.#slice(start, end).toLowerCase())
  }

  ontext(): void {}
  ontextentity(): void {}
  oncomment(): void {}
  oncdata(): void {}
  ondeclaration(): void {}
  onprocessinginstruction(): void {}
  onend(): void {}

  #close(name: string): void {
    if (FOREIGN.has(name) || INTEGRATION.has(name)) this.#foreign.pop()
    this.#handler.onClose(name)
  }

  #slice(start: number, end: number): string {
    let [first = ''] = this.#pieces
    while (start - this.#begin >= first.length && this.#pieces.length > 1) {
      this.#begin += first.length
      this.#pieces.shift()
      first = this.#pieces[0] ?? ''
    }
    const text = end - this.#begin <= first.length ? first : this.#pieces.join('')
    return text.slice(start - this.#begin, end - this.#begin)
  }
}
