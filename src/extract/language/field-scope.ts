import type { Element } from 'domhandler'
import type { PageView } from '../page-view.ts'
import type { JsonNode } from '../sources/json-node.ts'
import type { MetaEntry } from '../sources/meta.ts'
import type { TableRow } from '../sources/table.ts'
import type { RawValue } from '../values/raw-value.ts'
import type { Scope } from './selector.ts'

/** A tree that fields are read from: what a scope is in it, and what is read of a page as a whole. */
export interface PageTree {
  readonly scope: unknown
  readonly page: PageFacts
}

/** What fields ask of a page, whatever parsed it. */
export interface PageFacts {
  /** What references are resolved against. */
  readonly base: string
  /** The encoding in which it stood; null where nobody said. */
  readonly charset: string | null
  readonly meta: readonly MetaEntry[]
}

/** The tree of the default parser. */
export interface ParsedTree extends PageTree {
  readonly scope: Scope
  readonly page: PageView
}

/** Where the fields of one record, or of a nested one, look. */
export interface FieldScope<T extends PageTree = ParsedTree> {
  readonly page: T['page']
  readonly element: T['scope']
  /** Elements that are a record each, where one may stand within another: what is inside the inner one is not the outer one's. */
  readonly owners: ReadonlySet<Element> | undefined
  /** Node of structured data, for fields within one. */
  readonly node: JsonNode | undefined
  /** Entries of one structured meta property, for fields within it. */
  readonly meta: readonly MetaEntry[] | undefined
  /** Row of a table, for fields within it. */
  readonly row: TableRow | undefined
}

/** One place where values of a field may come from. */
export interface SourceReader<T extends PageTree> {
  readonly text: string
  /** Values are written by programs, not for people: numbers have a decimal point. Those that are a `SeenText` are not. */
  readonly isMachine: boolean
  /** Values were made by transforms: white space within them is meant. */
  readonly isMade: boolean
  /** Shape: in document order; `limit` 1 for a field of one value. */
  raws(scope: FieldScope<T>, limit: number): RawValue[]
  /** Scopes of nested records. */
  scopes(scope: FieldScope<T>, limit: number): FieldScope<T>[]
}

export const NO_LIMIT = Number.POSITIVE_INFINITY
