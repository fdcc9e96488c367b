import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import { systemClock } from '../../../../src/kernel/clock.ts'
import { silentObserver } from '../../../../src/kernel/observe.ts'

/** What `require` finds of the package on the machine that is played. */
const machine = vi.hoisted(() => ({ package: 'as it is' as 'as it is' | 'none' | 'other version' | 'no binary' }))

vi.mock('node:module', async (original) => {
  const real = await original<typeof import('node:module')>()
  const createRequire: typeof real.createRequire = (from) => {
    const require = real.createRequire(from)
    const isOurs = (name: string): boolean => name.startsWith('domparser-rs')
    const resolve = (name: string): string => {
      if (isOurs(name) && machine.package === 'none') throw new Error(`Cannot find module '${name}'`)
      return require.resolve(name)
    }
    const load = (name: string): unknown => {
      if (name === 'domparser-rs/package.json' && machine.package === 'other version') return { version: '9.9.9' }
      if (name === 'domparser-rs' && machine.package === 'no binary') throw new Error("Cannot find module 'domparser-linux-riscv64-gnu'")
      return require(name)
    }
    return Object.assign(load, require, { resolve }) as unknown as NodeJS.Require
  }
  return { ...real, createRequire, default: { ...real, createRequire } }
})

const folder = mkdtempSync(join(tmpdir(), 'millrace-native-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

beforeEach(() => {
  // What is found is kept for the process.
  vi.resetModules()
})

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

/** What `extractors check` says of the parser of two files: one that the native parser could read, and one that it could not. */
async function checked(): Promise<unknown[]> {
  const { checkExtractorFile } = await import('../../../../src/extract/check.ts')
  const plain = file('plain.yaml', 'name: plain\nversion: 1\nfields: { title: h1 }\n')
  const other = file('other.yaml', 'name: other\nversion: 1\nfields: { title: "h1 ~ p" }\n')
  const results = [await checkExtractorFile(plain), await checkExtractorFile(other)]
  return results.map((result) => (result.ok ? result.parser : result.problems))
}

/** The line of `doctor` about the parser. */
async function diagnosed(parser: 'auto' | 'native' | 'parse5'): Promise<unknown> {
  const { doctor } = await import('../../../../src/control/inspect/doctor.ts')
  const { config } = loadConfig({ sets: [`extract.parser=${parser}`], flags: {}, environment: {} })
  const findings = doctor({ config, clock: systemClock, observer: silentObserver, signal: new AbortController().signal })
  // Those before it need no broker.
  for await (const finding of findings) if (finding.check === 'HTML parser') return finding
  return undefined
}

/** How extraction starts: with which parser, or why it does not. */
async function started(parser: 'auto' | 'native'): Promise<string> {
  const { ExtractorHost } = await import('../../../../src/extract/extractor-host.ts')
  const options = { extractors: [], threads: 0, pageTimeoutMs: 1_000, pageMemoryBytes: 1e8, parser }
  const host = new ExtractorHost({ ...options, clock: systemClock, observer: silentObserver })
  try {
    await host.start()
    return 'started'
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    await host.stop({ mode: 'abort', timeoutMs: 0 })
  }
}

const ABSENT = 'it needs the package domparser-rs, which is not installed'
const OTHER = 'domparser-rs 9.9.9 is installed, and 0.1.1 is the one whose records are known to be the same'
const BINARY = "native can't load the package domparser-rs: Cannot find module 'domparser-linux-riscv64-gnu'"

describe('the optional native parser', () => {
  it.each([
    ['none', ABSENT],
    ['other version', OTHER],
    ['no binary', BINARY],
  ] as const)('is not used where the package is not as it must be (%s), and everybody says why', async (what, reason) => {
    machine.package = what
    expect(await checked()).toEqual([
      { name: 'parse5', reason },
      { name: 'parse5', reason: expect.stringContaining('the combinator ~') },
    ])
    expect(await diagnosed('auto')).toMatchObject({ level: 'ok', text: `parse5 (no native parser: ${reason})` })
    expect(await diagnosed('native')).toMatchObject({
      level: 'fail',
      text: `extract.parser is native: ${reason}`,
      fix: 'Run `npm install domparser-rs@0.1.1`.',
    })
    expect(await started('auto')).toBe('started')
    expect(await started('native')).toBe(`extract.parser is native, and the native parser can't be used: ${reason}`)
  })

  it('is used where it is there, for extractors that it reads alike', async () => {
    machine.package = 'as it is'
    expect(await checked()).toEqual([
      { name: 'native', reason: undefined },
      { name: 'parse5', reason: expect.stringContaining('the combinator ~') },
    ])
    expect(await diagnosed('auto')).toMatchObject({ level: 'ok', text: 'domparser-rs 0.1.1 for what it reads alike, parse5 for the rest' })
    expect(await diagnosed('parse5')).toMatchObject({ level: 'ok', text: 'parse5, as extract.parser says' })
    expect(await started('native')).toBe('started')
  })
})
