import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { EVENTS } from '../src/kernel/events.ts'

/** The rules of the house (src/README.md), checked: who may import what, who owns a library, how large a file may grow. */
const root = fileURLToPath(new URL('../src/', import.meta.url))

interface SourceFile {
  /** Path below src, with forward slashes. */
  readonly path: string
  readonly folder: string
  readonly text: string
  /** Files of src that are imported at run time, and those imported for their types alone. */
  readonly imports: readonly string[]
  /** Those of them that wait until they are needed. */
  readonly lateImports: readonly string[]
  readonly typeImports: readonly string[]
  readonly packages: readonly string[]
}

const files = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map(readSource)

function readSource(path: string): SourceFile {
  const text = readFileSync(join(root, path), 'utf8')
  const code = text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/^\s*\/\/.*$/gm, '')
  const imports: string[] = []
  const lateImports: string[] = []
  const typeImports: string[] = []
  const packages: string[] = []
  const pattern = /(?:^|\n)\s*(?:import|export)\s+(type\s+)?(?:[^'"();]*?\sfrom\s+)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)/g
  for (const [, type, named, dynamic] of code.matchAll(pattern)) {
    const target = named ?? dynamic ?? ''
    if (target.startsWith('.')) {
      const resolved = relative(root, join(root, dirname(path), target)).replaceAll('\\', '/')
      ;(type === undefined ? imports : typeImports).push(resolved)
      if (dynamic !== undefined) lateImports.push(resolved)
    } else packages.push(target)
  }
  return { path, folder: path.includes('/') ? (path.split('/')[0] ?? '') : '', text, imports, lateImports, typeImports, packages }
}

/** Folder -> folders that it may import beside itself. One direction: as the data flows, and down to the kernel. */
const SHARED = ['politeness', 'url', 'blobs', 'kafka', 'message', 'kernel']
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  kernel: [],
  machine: ['kernel'],
  config: ['kernel'],
  url: ['kernel'],
  message: ['kernel', 'url'],
  state: ['kernel', 'machine'],
  kafka: ['kernel', 'message', 'url'],
  blobs: ['kernel', 'machine', 'message'],
  embedded: ['kernel', 'machine'],
  politeness: ['kernel', 'url', 'message'],
  frontier: [...SHARED, 'state'],
  fetch: [...SHARED, 'state'],
  delay: [...SHARED, 'state'],
  extract: [...SHARED, 'state'],
  comparison: ['kernel', 'extract'],
  example: ['kernel'],
  control: ['frontier', 'fetch', 'delay', 'extract', 'comparison', 'embedded', 'example', 'config', 'state', 'machine', ...SHARED],
  cli: ['control', 'config', 'message', 'kernel'],
  '': ['control', 'extract', 'comparison', 'message', 'state', 'config', 'kernel', 'machine'],
}

/** Each as a way from a file or folder back to itself. */
function cyclesOf(edges: ReadonlyMap<string, readonly string[]>): string[] {
  const cycles: string[] = []
  const state = new Map<string, 'open' | 'done'>()
  const visit = (path: string, trail: readonly string[]): void => {
    if (state.get(path) === 'done') return
    if (state.get(path) === 'open') {
      cycles.push([...trail.slice(trail.indexOf(path)), path].join(' -> '))
      return
    }
    state.set(path, 'open')
    for (const next of edges.get(path) ?? []) visit(next, [...trail, path])
    state.set(path, 'done')
  }
  for (const path of edges.keys()) visit(path, [])
  return cycles
}

describe('the layout of src', () => {
  it('has the folders that the rules know, and no others', () => {
    const unknown = [...new Set(files.map((file) => file.folder))].filter((folder) => !Object.hasOwn(ALLOWED, folder))
    expect(unknown).toEqual([])
  })

  it('lets imports go in one direction, and stages never import each other', () => {
    const wrong = files.flatMap((file) =>
      [...file.imports, ...file.typeImports]
        .map((target) => ({ target, folder: target.includes('/') ? (target.split('/')[0] ?? '') : '' }))
        .filter(({ folder }) => folder !== file.folder && !(ALLOWED[file.folder] ?? []).includes(folder))
        .map(({ target }) => `${file.path} -> ${target}`),
    )
    expect(wrong).toEqual([])
  })

  it('has no cycle of imports, of types neither', () => {
    expect(cyclesOf(new Map(files.map((file) => [file.path, [...file.imports, ...file.typeImports]])))).toEqual([])
  })

  it('has folders in control that form no cycle, and none of them imports what stands in control itself', () => {
    const edges = new Map<string, readonly string[]>()
    for (const file of files.filter(({ folder }) => folder === 'control')) {
      const own = dirname(file.path)
      const others = [...file.imports, ...file.typeImports].map((target) => dirname(target))
      const seen = others.filter((other) => other !== own && other.split('/')[0] === 'control')
      edges.set(own, [...new Set([...(edges.get(own) ?? []), ...seen])].sort())
    }
    expect(cyclesOf(edges)).toEqual([])
    expect([...edges].filter(([, others]) => others.includes('control'))).toEqual([])
  })

  it('gives each library one owner', () => {
    const owners: Readonly<Record<string, RegExp>> = {
      kafkajs: /^kafka\//,
      avsc: /^message\/avro/,
      aws4fetch: /^blobs\//,
      undici: /^fetch\//,
      ioredis: /^state\/redis\//,
      lmdb: /^state\/lmdb\//,
      cheerio: /^extract\//,
      commander: /^cli\//,
      pino: /^cli\//,
      picocolors: /^cli\//,
      'prom-client': /^control\//,
      tldts: /^url\//,
      'tough-cookie': /^fetch\//,
      fzstd: /^message\//,
    }
    const wrong = files.flatMap((file) =>
      file.packages
        .map((name) => (name.startsWith('@') ? name.split('/').slice(0, 2).join('/') : (name.split('/')[0] ?? '')))
        .filter((name) => owners[name] !== undefined && owners[name]?.test(file.path) === false)
        .map((name) => `${file.path} imports ${name}`),
    )
    expect(wrong).toEqual([])
  })

  it('loads nothing that fetches or parses, and no state store but the one in use, for commands that only ask and write', () => {
    const byPath = new Map(files.map((file) => [file.path, file]))
    const heavy = ['undici', 'cheerio', 'parse5', 'htmlparser2', 'ioredis', 'lmdb']
    const quick = ['broker', 'consume', 'dead-letters', 'explain', 'ledger', 'lineage', 'produce', 'sites']
    const wrong = quick.flatMap((command) => {
      const reached = new Set([`cli/${command}-session.ts`])
      for (const path of reached) {
        const { imports = [], lateImports = [] } = byPath.get(path) ?? {}
        for (const target of imports) if (!lateImports.includes(target)) reached.add(target)
      }
      expect(reached.size).toBeGreaterThan(10)
      return [...reached].flatMap((path) =>
        (byPath.get(path)?.packages ?? []).filter((name) => heavy.includes(name)).map((name) => `${command} loads ${name} by ${path}`),
      )
    })
    expect(wrong).toEqual([])
  })

  it('reads clocks and the environment in one place each, and listens to signals and ends the process in entries alone', () => {
    const rules: readonly (readonly [RegExp, readonly string[]])[] = [
      [/\bDate\.now\(|\bperformance\.now\(|\bsetTimeout\(|\bsetInterval\(|\bAbortSignal\.timeout\(|\bnew Date\(\)/, ['kernel/clock.ts']],
      [/\bprocess\.env\b/, ['config/load.ts']],
      [/\bprocess\.exit\(/, ['cli/main.ts', 'extract/extraction-process-main.ts']],
      // Whatever the process is listened to for: the names of signals may stand elsewhere.
      [/\bprocess\.(on|once)\(/, ['cli/main.ts', 'embedded/supervisor-main.ts', 'extract/extraction-process-main.ts']],
    ]
    const wrong = files.flatMap((file) => {
      const code = file.text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/\/\/.*$/gm, '')
      return rules
        .filter(([pattern, owners]) => !owners.includes(file.path) && pattern.test(code))
        .map(([pattern]) => `${file.path} matches ${pattern}`)
    })
    expect(wrong).toEqual([])
  })

  it('has no barrels: a file that only passes on what others export', () => {
    const barrels = files.filter(
      (file) => file.path !== 'index.ts' && (/export \* from/.test(file.text) || file.path.endsWith('/index.ts')),
    )
    expect(barrels.map((file) => file.path)).toEqual([])
  })

  it('keeps files under 400 lines', () => {
    const long = files.filter((file) => !file.path.includes('/generated/') && file.text.split('\n').length > 401)
    expect(long.map((file) => `${file.path} ${file.text.split('\n').length}`)).toEqual([])
  })

  it('has no file whose name says nothing, and writes names in kebab-case', () => {
    const named = files.filter((file) => !file.path.includes('/generated/'))
    const bad = named.filter(
      (file) => /(^|\/)(utils?|helpers?|common|misc|types)\.ts$/.test(file.path) || !/^[a-z0-9/-]+\.ts$/.test(file.path),
    )
    expect(bad.map((file) => file.path)).toEqual([])
  })

  it('emits every event of the catalogue somewhere', () => {
    const emitting = files.filter((file) => file.path !== 'kernel/events.ts').map((file) => file.text)
    // By its name as text: a name is also handed on, and emitted by whoever gets it.
    const silent = Object.keys(EVENTS).filter((name) => !emitting.some((text) => text.includes(`'${name}'`)))
    expect(silent).toEqual([])
  })

  it('silences nothing', () => {
    const wrong = files.filter((file) => /@ts-ignore|@ts-expect-error|biome-ignore|\bTODO\b|\bFIXME\b|\bas any\b/.test(file.text))
    expect(wrong.map((file) => file.path)).toEqual([])
  })
})
