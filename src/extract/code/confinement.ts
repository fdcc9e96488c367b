import { createRequire, isBuiltin } from 'node:module'

/**
 * What a code extractor is given instead of the world: a clock that stands, chance that repeats itself, no network, no timers.
 *
 * It keeps honest code deterministic; it is no sandbox. Extractors are code of the operator's own, and one that wants to reach the
 * real things can. What protects the stage from an extractor is its process, which can be ended.
 */
export interface Confinement {
  /** Names that stand for their global namesakes within the module. */
  readonly globals: Readonly<Record<string, unknown>>
  readonly require: (name: string) => unknown
  /** Sets the clock and the chance for one page. Units: epoch ms. */
  enter(nowMs: number, seed: string): void
}

const NETWORK: ReadonlySet<string> = new Set('child_process cluster dgram dns http http2 https inspector net tls worker_threads'.split(' '))
const ABSENT_GLOBALS = ['fetch', 'WebSocket', 'EventSource', 'XMLHttpRequest', 'Worker', 'BroadcastChannel'] as const
const ABSENT_TIMERS = ['setTimeout', 'setInterval', 'setImmediate'] as const

/** What libraries look at while they load. `exit` ends the extraction process, which costs the page its record and nothing else. */
const HARMLESS_PROCESS: Readonly<Record<string, unknown>> = {
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
  const absent = (name: string): unknown => refusing(`${name} is not there: an extractor never sees the network or a timer`)
  const FrozenDate = frozenDate(() => now)
  const FrozenMath: Math = Object.create(Math, { random: { value: random } })
  return {
    globals: {
      Date: FrozenDate,
      Math: FrozenMath,
      performance: { now: () => 0, timeOrigin: 0 },
      crypto: refusing('crypto is not there: an extractor never sees chance; node:crypto has hashes'),
      process: refusing('this part of process is not there: an extractor never sees where it runs', HARMLESS_PROCESS),
      ...Object.fromEntries([...ABSENT_GLOBALS, ...ABSENT_TIMERS].map((name) => [name, absent(name)])),
    },
    require(name) {
      const bare = name.replace(/^node:/, '')
      if (NETWORK.has(bare.split('/')[0] ?? '')) return absent(name)
      if (!isBuiltin(name)) throw new Error(`${name} can't be loaded at run time: import it, so that it is part of the extractor`)
      return real(name)
    },
    enter(nowMs, seed) {
      now = nowMs
      state = Number.parseInt(seed.slice(0, 8), 16) | 0
    },
  }
}

/** `new Date()` and `Date.now()` give the page's time; everything else is as ever. */
function frozenDate(now: () => number): DateConstructor {
  return new Proxy(Date, {
    construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    apply: () => new Date(now()).toString(),
    get: (target, key, receiver) => (key === 'now' ? now : Reflect.get(target, key, receiver)),
  })
}

/** A thing that says why it is not there, whatever is done with it; `having` is there all the same. */
function refusing(why: string, having: Readonly<Record<string, unknown>> = {}): unknown {
  const refuse = (): never => {
    throw new Error(why)
  }
  return new Proxy(refuse, {
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
