import { createRequire, isBuiltin } from 'node:module'
import { runInNewContext } from 'node:vm'

/**
 * What a code extractor is given instead of the world: a clock that stands, chance that repeats itself, no network, no timers.
 *
 * It keeps honest code deterministic; it is no sandbox. Extractors are code of the operator's own, and one that wants to reach the
 * real things can. What protects the stage from an extractor is its process, which can be ended.
 */
export interface Confinement {
  /** Names of the language: parameters of the module, since code asks for them all the time and a name in a scope is far slower. */
  readonly language: Readonly<Record<string, unknown>>
  /** Objects whose properties are names within the module, the innermost last. */
  readonly scopes: readonly object[]
  readonly require: (name: string) => unknown
  /** Sets the clock and the chance for one page. Units: epoch ms. */
  enter(nowMs: number, seed: string): void
}

const NO_NETWORK = 'an extractor never sees the network or a timer'
const NETWORK_MODULES = 'child_process cluster dgram dns http http2 https inspector net timers tls worker_threads'.split(' ')
const ABSENT_GLOBALS = ['fetch', 'WebSocket', 'EventSource', 'XMLHttpRequest', 'Worker', 'BroadcastChannel'] as const
const ABSENT_TIMERS = ['setTimeout', 'setInterval', 'setImmediate'] as const

const FROZEN_PERFORMANCE = Object.freeze({ now: () => 0, timeOrigin: 0 })

type Names = Readonly<Record<string, unknown>>

interface ModulePart {
  /** What of a module is there. */
  readonly having: (real: Names) => Names
  /** Why the rest is not. */
  readonly why: string
}

const HASHES = [
  ...['createHash', 'createHmac', 'hash', 'getHashes', 'timingSafeEqual', 'createCipheriv', 'createDecipheriv', 'createSecretKey'],
  ...['hkdfSync', 'pbkdf2Sync', 'scryptSync', 'constants'],
] as const

/** Modules of Node.js that are not there, or in part; every other one is as it is. */
const PARTS: ReadonlyMap<string, ModulePart> = new Map<string, ModulePart>([
  ...NETWORK_MODULES.map((name) => [name, { having: () => ({}), why: NO_NETWORK }] as const),
  [
    'crypto',
    {
      having: (real) => Object.fromEntries(HASHES.flatMap((name) => (name in real ? [[name, real[name]]] : []))),
      why: 'an extractor never sees chance; what gives the same for the same is there (createHash, createHmac, createDecipheriv, …)',
    },
  ],
  ['os', { having: () => ({ EOL: '\n', platform: () => process.platform }), why: 'an extractor never sees where it runs' }],
  ['perf_hooks', { having: () => ({ performance: FROZEN_PERFORMANCE }), why: 'an extractor never sees a clock' }],
])

/** What libraries look at while they load. `exit` ends the extraction process, which costs the page its record and nothing else. */
const HARMLESS_PROCESS: Names = {
  env: {},
  argv: [],
  execArgv: [],
  browser: false,
  emitWarning: () => undefined,
  exit: process.exit,
  platform: process.platform,
  version: process.version,
  versions: process.versions,
}

/** Shape: file is where the module lies: its `require` begins there. */
export function createConfinement(file: string): Confinement {
  let now = 0
  let state = 0
  const random = (): number => {
    // mulberry32: 32 bits of state are enough where nothing secret depends on it.
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const real = createRequire(file)
  const absent = (name: string): unknown => refusing(`${name} is not there: ${NO_NETWORK}`)
  const FrozenDate = frozenDate(() => now)
  const FrozenIntl: typeof Intl = Object.create(Intl, { DateTimeFormat: { value: frozenFormat(() => now) } })
  const FrozenMath: Math = Object.create(Math, { random: { value: random } })
  const harmlessProcess = refusing('this part of process is not there: an extractor never sees where it runs', HARMLESS_PROCESS)
  const confined: Names = {
    Date: FrozenDate,
    Intl: FrozenIntl,
    Math: FrozenMath,
    performance: FROZEN_PERFORMANCE,
    crypto: refusing('crypto is not there: an extractor never sees chance; node:crypto has hashes'),
    process: harmlessProcess,
    ...Object.fromEntries([...ABSENT_GLOBALS, ...ABSENT_TIMERS].map((name) => [name, absent(name)])),
  }
  const global = globalObject(confined)
  return {
    language: Object.fromEntries(LANGUAGE_NAMES.map((name) => [name, global[name]])),
    // What the module deletes from its global object is not the real thing again.
    scopes: [confined, global],
    require(name) {
      if (!isBuiltin(name)) throw new Error(`${name} can't be loaded at run time: import it, so that it is part of the extractor`)
      const [bare = ''] = name.replace(/^node:/, '').split('/')
      if (bare === 'process') return harmlessProcess
      const part = PARTS.get(bare)
      return part === undefined ? real(name) : partOf(real(name), name, part)
    },
    enter(nowMs, seed) {
      now = nowMs
      state = Number.parseInt(seed.slice(0, 8), 16) | 0
    },
  }
}

/** Names of the global object. Shape: those of them that there are. */
const GLOBAL_OBJECTS = ['globalThis', 'global', 'self'].filter((name) => name in globalThis)

/** What a global object has that knows of no machine. No function may have a parameter `eval`. */
const LANGUAGE_NAMES = (runInNewContext('Object.getOwnPropertyNames(globalThis)') as string[]).filter((name) => name !== 'eval')

/**
 * The global object, with the confined names in it, under each of its names: libraries look there for what they may use. It is a copy, and
 * what is written to it stays with the module: its neighbours have the real one.
 */
function globalObject(confined: Names): Names {
  const own: Record<string, unknown> = Object.create(Object.getPrototypeOf(globalThis))
  const define = (key: PropertyKey, value: unknown): unknown =>
    Object.defineProperty(own, key, { value, writable: true, enumerable: true, configurable: true })
  for (const key of Reflect.ownKeys(globalThis)) {
    const real = Reflect.getOwnPropertyDescriptor(globalThis, key)
    if (real === undefined) continue
    if ('value' in real) Object.defineProperty(own, key, real)
    // Made when it is first asked for, by a getter that wants the real object; a setter would write there.
    else Object.defineProperty(own, key, { ...real, get: () => Reflect.get(globalThis, key), set: (value) => define(key, value) })
  }
  for (const name of GLOBAL_OBJECTS) define(name, own)
  for (const [name, value] of Object.entries(confined)) define(name, value)
  return own
}

/** `new Date()` and `Date.now()` give the page's time, those of a date's own `constructor` too; everything else is as ever. */
function frozenDate(now: () => number): DateConstructor {
  class FrozenDate extends Date {
    static override readonly now = now
    constructor(...args: readonly unknown[]) {
      super(...((args.length === 0 ? [now()] : args) as [number]))
    }
  }
  const callable = new Proxy(FrozenDate, { apply: () => new Date(now()).toString() }) as unknown as DateConstructor
  Object.defineProperty(FrozenDate.prototype, 'constructor', { value: callable, writable: true, configurable: true })
  Object.defineProperty(FrozenDate, 'name', { value: 'Date', configurable: true })
  const isInstance = Function.prototype[Symbol.hasInstance]
  // A date that was made elsewhere is one as well, but none of a class that extends it.
  Object.defineProperty(FrozenDate, Symbol.hasInstance, {
    value(this: unknown, value: unknown) {
      return isInstance.call(this === callable ? Date : this, value)
    },
  })
  return callable
}

/** Formats the page's time where it is given none; everything else is as ever. */
function frozenFormat(now: () => number): typeof Intl.DateTimeFormat {
  const { formatToParts } = Intl.DateTimeFormat.prototype
  const frozen = (real: Intl.DateTimeFormat): Intl.DateTimeFormat => {
    const { format } = real
    return Object.defineProperties(real, {
      constructor: { value: Frozen },
      format: { value: (date: Date | number = now()) => format(date) },
      formatToParts: { value: (date: Date | number = now()) => formatToParts.call(real, date) },
    })
  }
  const Frozen: typeof Intl.DateTimeFormat = new Proxy(Intl.DateTimeFormat, {
    construct: (target, args, newTarget) => frozen(Reflect.construct(target, args, newTarget)),
    apply: (target, _this, args: Parameters<typeof Intl.DateTimeFormat>) => frozen(new target(...args)),
  })
  return Frozen
}

/** A module with all its names, as `import * as` looks for them; those that are not there say why once they are used. */
function partOf(real: Names, module: string, { having, why }: ModulePart): Names {
  const refused = Object.keys(real).map((name) => [name, refusing(`${module}.${name} is not there: ${why}`)])
  return { ...Object.fromEntries(refused), ...having(real) }
}

/** A thing that says why it is not there, whatever is done with it; `having` is there all the same. */
function refusing(why: string, having: Names = {}): unknown {
  // An arrow function could not be made with `new`, nor extended, and JavaScript would say that instead.
  function refuse(): never {
    throw new Error(why)
  }
  // Its own names are those that `import * as` finds.
  return new Proxy(Object.assign(refuse, having), {
    get(_target, key) {
      if (typeof key === 'string' && Object.hasOwn(having, key)) return having[key]
      // Bundled modules look at these before anything is used.
      if (typeof key === 'symbol' || key === '__esModule' || key === 'default' || key === 'then') return undefined
      return refusing(why)
    },
    apply: refuse,
    construct: refuse,
  })
}
