import { SourceMap } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { errorText } from '../../kernel/errors.ts'
import type { ExtractorProblem } from '../language/extractor-problem.ts'
import { definitionOffset } from './definition-offset.ts'

/** A bundle as it is sent to the process that runs it. */
export interface MappedCode {
  /** Whole path; the name of the bundle in stacks. */
  readonly file: string
  /** The same as the operator wrote it: for messages. */
  readonly shown: string
  readonly code: string
  /** Source map of `code`, JSON text; its sources are relative to the folder of the file. */
  readonly sourceMap: string
}

/** A place in a file that the author of an extractor wrote. Units: line and column from 1. */
export interface CodePlace {
  /** As seen from the folder of the extractor. */
  readonly source: string
  /** The same beside the extractor's file as the operator wrote it. */
  readonly file: string
  readonly line: number
  readonly column: number
}

interface CodeFrame extends CodePlace {
  /** Name of the function; empty at the top level. */
  readonly name: string
}

/** What a module threw. */
export interface Thrown {
  /** Name of the error and its message. */
  readonly text: string
  /** What threw and who called it, innermost first: `price (lib/price.ts:3:9)`. */
  readonly calls: readonly string[]
  /** The place to look at first; undefined where what was thrown is no error, or came from elsewhere. */
  readonly place: CodePlace | undefined
}

/** Calls that a message shows: what threw, and who called it. */
const SHOWN_FRAMES = 3
const MAX_MESSAGE = 1_000

/** From places in a bundle to places in the files it was made of. The map is read at the first question: most modules have no fault. */
export class BundleMap {
  readonly #module: MappedCode
  #map: SourceMap | undefined

  constructor(module: MappedCode) {
    this.#module = module
  }

  /**
   * Where a key of the exported definition stands; what it stands in where it is not there; undefined where no definition is found.
   * Shape: path: keys from the top of the definition, none for the definition.
   */
  property(path: readonly (string | number)[]): CodePlace | undefined {
    const { code } = this.#module
    const offset = definitionOffset(code, path)
    if (offset === undefined) return undefined
    const line = code.slice(0, offset).split('\n').length
    return this.#place(line, offset - code.lastIndexOf('\n', offset - 1))
  }

  /** What a module threw, with its places in the author's files. */
  thrown(error: unknown): Thrown {
    try {
      return this.#ofThrown(error)
    } catch {
      // It throws when it is looked at.
      return { text: errorText(error).slice(0, MAX_MESSAGE), calls: [], place: undefined }
    }
  }

  #ofThrown(error: unknown): Thrown {
    const frames = this.#frames(error)
    const own = frames.filter(({ source }) => !isPackage(source))
    const name = error instanceof Error && error.name !== 'Error' ? `${String(error.name)}: ` : ''
    const text = `${name}${errorText(error).slice(0, MAX_MESSAGE)}`
    const [innermost] = frames
    if (innermost === undefined) return { text, calls: [], place: undefined }
    const calls = innermost === own[0] ? own : [innermost, ...own]
    return { text, calls: calls.slice(0, SHOWN_FRAMES).map(frameText), place: own[0] ?? innermost }
  }

  /** Innermost first. What is not of the bundle, or was written by the bundler, is left out. */
  #frames(error: unknown): readonly CodeFrame[] {
    const stack: unknown = error instanceof Error ? error.stack : undefined
    if (typeof stack !== 'string') return []
    const lines = stack.split('\n')
    return lines.flatMap((text, index) => {
      const at = text.indexOf(`${this.#module.file}:`)
      const position = at === -1 ? null : /^(\d+)(?::(\d+))?/.exec(text.slice(at + this.#module.file.length + 1))
      if (position === null) return []
      // A text that can't be compiled (a regular expression) has its line alone; a mark two lines below stands under the column.
      const column = position[2] === undefined ? (lines[index + 2] ?? '').indexOf('^') + 1 : Number(position[2])
      const place = this.#place(Number(position[1]), Math.max(1, column))
      const name = /^\s*at (?:async )?(?:new )?(.+) \($/.exec(text.slice(0, at))?.[1] ?? ''
      return place === undefined ? [] : [{ ...place, name: nameOf(name) }]
    })
  }

  /** Shape: line and column of the bundle, from 1. */
  #place(line: number, column: number): CodePlace | undefined {
    this.#map ??= new SourceMap(JSON.parse(this.#module.sourceMap))
    const entry = this.#map.findEntry(line - 1, column - 1)
    if (!('originalSource' in entry) || entry.generatedLine !== line - 1) return undefined
    const source = entry.originalSource
    const { shown } = this.#module
    const file = source === basename(shown) ? shown : join(dirname(shown), source)
    return { source, file, line: entry.originalLine + 1, column: entry.originalColumn + 1 }
  }
}

/** The text with its calls, on one line. */
export function thrownText({ text, calls }: Pick<Thrown, 'text' | 'calls'>): string {
  return calls.length === 0 ? text : `${text} (at ${calls.join(', called from ')})`
}

/** A problem of an extractor in code at a place; of the file as a whole where there is none. */
export function problemAt(place: CodePlace | undefined, message: string): ExtractorProblem {
  if (place === undefined) return { severity: 'error', message, line: undefined, column: undefined }
  return { severity: 'error', message, file: place.file, line: place.line, column: place.column }
}

function frameText({ name, source, line, column }: CodeFrame): string {
  const place = `${source}:${line}:${column}`
  return name === '' ? place : `${name} (${place})`
}

/** `Object.extract` is `extract`; an alias in brackets and names of no function say nothing. */
function nameOf(name: string): string {
  const bare = name.replace(/ \[as .*\]$/, '').replace(/^Object\./, '')
  return bare === '<anonymous>' || bare === 'eval' ? '' : bare
}

/** A package that the extractor uses: its author looks at his own lines first. */
function isPackage(source: string): boolean {
  return source.split(/[\\/]/).includes('node_modules')
}
