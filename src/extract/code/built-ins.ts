/** Taken before any extractor is loaded: what is looked after can't be trusted to look. */
const { ownKeys, getOwnPropertyDescriptor, defineProperty, deleteProperty } = Reflect
const { is } = Object

interface Kept {
  readonly holder: object
  readonly key: string | symbol
  /** For people: `Array.prototype.map`. */
  readonly name: string
  readonly descriptor: PropertyDescriptor
  readonly isAccessor: boolean
}

/** Something of the language was changed in a way that can't be undone: the process is of no use to any extractor. */
export class LanguageBroken extends Error {
  override readonly name = 'LanguageBroken'
}

interface Watched {
  readonly holder: object
  readonly name: string
  readonly keys: ReadonlySet<string | symbol>
}

/** Parts of the language that hold functions of their own, and may have a prototype that does. */
const NAMES = [
  ...['Object', 'Function', 'Array', 'String', 'Number', 'Boolean', 'Symbol', 'BigInt', 'Date', 'RegExp', 'Promise', 'Proxy', 'Reflect'],
  ...['Map', 'Set', 'WeakMap', 'WeakSet', 'WeakRef', 'JSON', 'Math', 'Atomics', 'Intl', 'ArrayBuffer', 'SharedArrayBuffer', 'DataView'],
  ...['Uint8Array', 'Int8Array', 'Uint16Array', 'Int16Array', 'Uint32Array', 'Int32Array', 'Float32Array', 'Float64Array'],
  ...['BigInt64Array', 'BigUint64Array', 'Error', 'TypeError', 'RangeError', 'SyntaxError', 'ReferenceError', 'EvalError', 'URIError'],
  ...['URL', 'URLSearchParams', 'TextEncoder', 'TextDecoder', 'Buffer', 'parseInt', 'parseFloat', 'isNaN', 'isFinite', 'structuredClone'],
  ...['encodeURIComponent', 'decodeURIComponent', 'encodeURI', 'decodeURI', 'queueMicrotask', 'atob', 'btoa'],
] as const
/** What is added to these is seen by everybody: `for … in` walks over it. */
const WATCHED = ['Object', 'Array', 'String', 'Number', 'Function', 'RegExp', 'Map', 'Set'] as const

/**
 * The built-in functions of the language as they were. All extractors of a process share them with each other and with Millrace: one that
 * changes `Array.prototype.map` would quietly change the records of its neighbours.
 */
export class BuiltIns {
  readonly #kept: readonly Kept[]
  readonly #watched: readonly Watched[]

  constructor() {
    const kept: Kept[] = []
    const seen = new Set<unknown>()
    const keep = (holder: object, name: string): void => {
      if (seen.has(holder)) return
      seen.add(holder)
      for (const key of ownKeys(holder)) {
        const descriptor = getOwnPropertyDescriptor(holder, key)
        if (descriptor === undefined || !isChangeable(descriptor) || !isFunctional(descriptor)) continue
        kept.push({ holder, key, name: `${name}.${String(key)}`, descriptor, isAccessor: !('value' in descriptor) })
      }
    }
    for (const name of NAMES) {
      // Some of them are made when they are first asked for.
      const value: unknown = (globalThis as Record<string, unknown>)[name]
      const descriptor = getOwnPropertyDescriptor(globalThis, name)
      if (descriptor === undefined || !('value' in descriptor)) continue
      kept.push({ holder: globalThis, key: name, name, descriptor, isAccessor: false })
      for (const [holder, path] of withPrototypes(value, name)) keep(holder, path)
    }
    for (const [iterator, name] of iterators()) keep(iterator, name)
    this.#kept = kept
    this.#watched = WATCHED.map((name) => {
      const holder = (globalThis as unknown as Record<string, { prototype: object }>)[name]?.prototype ?? {}
      return { holder, name: `${name}.prototype`, keys: new Set(ownKeys(holder)) }
    })
  }

  /** Puts back what differs. Shape: its names, none where all is as it was. Errors: LanguageBroken. */
  putBack(): string[] {
    const changed: string[] = []
    for (let index = 0; index < this.#kept.length; index += 1) {
      const kept = this.#kept[index] as Kept
      if (isAsItWas(kept)) continue
      if (!defineProperty(kept.holder, kept.key, kept.descriptor)) throw new LanguageBroken(`${kept.name} was changed for good`)
      changed[changed.length] = kept.name
    }
    for (let index = 0; index < this.#watched.length; index += 1) {
      const { holder, name, keys } = this.#watched[index] as Watched
      const present = ownKeys(holder)
      if (present.length === keys.size) continue
      for (let at = 0; at < present.length; at += 1) {
        const key = present[at] as string | symbol
        if (keys.has(key)) continue
        if (!deleteProperty(holder, key)) throw new LanguageBroken(`${name}.${String(key)} was added for good`)
        changed[changed.length] = `${name}.${String(key)}`
      }
    }
    return changed
  }
}

/** Shape: reads what is there, and makes nothing but for accessors: it is asked after every page. */
function isAsItWas({ holder, key, descriptor, isAccessor }: Kept): boolean {
  if (!isAccessor) return is((holder as Record<string | symbol, unknown>)[key], descriptor.value)
  const now = getOwnPropertyDescriptor(holder, key)
  return now?.get === descriptor.get && now?.set === descriptor.set
}

/** Settings, as `Error.stackTraceLimit`, may be set. */
function isFunctional(descriptor: PropertyDescriptor): boolean {
  if (!('value' in descriptor)) return true
  return typeof descriptor.value === 'function' || (typeof descriptor.value === 'object' && descriptor.value !== null)
}

function isChangeable({ configurable, writable }: PropertyDescriptor): boolean {
  return configurable === true || writable === true
}

function* withPrototypes(value: unknown, name: string): Generator<[object, string]> {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return
  yield [value, name]
  const { prototype } = value as { prototype?: unknown }
  if (typeof prototype !== 'object' && typeof prototype !== 'function') return
  if (prototype === null) return
  yield [prototype, `${name}.prototype`]
  const shared: unknown = Object.getPrototypeOf(prototype)
  // %TypedArray%.prototype has no name of its own.
  if (shared !== null && shared !== Object.prototype) yield [shared as object, `the prototype of ${name}.prototype`]
}

/** Objects behind `for … of`, which have no names. */
function iterators(): [object, string][] {
  const of = (value: object, name: string): [object, string] => [Object.getPrototypeOf(value), name]
  const array = of([][Symbol.iterator](), 'the iterator of lists')
  return [
    array,
    of(array[0], 'the iterator of all'),
    of(new Map()[Symbol.iterator](), 'the iterator of maps'),
    of(new Set()[Symbol.iterator](), 'the iterator of sets'),
    of(''[Symbol.iterator](), 'the iterator of texts'),
    of('a'.matchAll(/a/g), 'the iterator of matches'),
  ]
}
