import { createRequire } from 'node:module'

/** The modules of one loaded copy of kafkajs, by their path below `kafkajs/src/`. */
export interface KafkajsModules {
  /** Exports of a module; loads it (and what it needs) where it is not loaded yet. */
  load(path: string): unknown
  /** Puts other exports in the place of a module's own. Only modules that are loaded afterwards see them. */
  replace(path: string, exports: unknown): void
  /** The public entry of kafkajs; loads everything. */
  entry(): unknown
  /** Version in the package.json of this copy. */
  version(): string
  /** True when the public entry was loaded by somebody: a replacement would come too late. */
  isEntryLoaded(): boolean
}

/** The copy of kafkajs that Node's own module cache holds. */
export function kafkajsModules(): KafkajsModules {
  const require = createRequire(import.meta.url)
  const file = (path: string): string => require.resolve(`kafkajs/src/${path}`)
  return {
    load: (path) => require(file(path)),
    replace: (path, exports) => {
      require(file(path))
      const cached = require.cache[file(path)]
      if (cached === undefined) throw new Error(`kafkajs/src/${path} was loaded but is not in the module cache`)
      cached.exports = exports
    },
    entry: () => require('kafkajs'),
    version: () => String((require('kafkajs/package.json') as { version?: unknown }).version),
    isEntryLoaded: () => require.cache[require.resolve('kafkajs')] !== undefined,
  }
}
