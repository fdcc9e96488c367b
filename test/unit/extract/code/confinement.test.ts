import { createHash, createHmac } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { bundleModule } from '../../../../src/extract/code/bundle.ts'
import { loadCode } from '../../../../src/extract/code/code-extractor.ts'
import type { ExtractorInput } from '../../../../src/extract/define-extractor.ts'

const folder = mkdtempSync(join(tmpdir(), 'confinement-'))
afterAll(() => rmSync(folder, { recursive: true }))

const FETCHED_AT = Date.parse('2024-05-06T10:11:12Z')

/** What an expression comes to in an extractor as its author writes it, with its imports; the message where it throws. */
async function resultOf(expression: string, imports = ''): Promise<unknown> {
  const file = join(folder, 'it.ts')
  const schema = `{ type: 'record', name: 'It', fields: [] }`
  writeFileSync(
    file,
    `${imports}\nexport default { name: 'it', version: 1, schema: ${schema}, extract() { return [{ key: 1, data: ${expression} }] } }\n`,
  )
  const { code, sourceMap } = await bundleModule(file)
  const extracted = loadCode({ file, shown: 'it.ts', code, sourceMap }).extract({ page: { fetchedAt: FETCHED_AT } } as ExtractorInput, '01')
  return extracted.ok ? extracted.items[0]?.data : extracted.message
}

describe('what an extractor imports of Node.js', () => {
  it.each([
    ["import { createHash } from 'node:crypto'", "createHash('md5').update('a').digest('hex')"],
    ["import crypto from 'crypto'", "crypto.createHash('md5').update('a').digest('hex')"],
    ["import * as crypto from 'node:crypto'", "crypto.createHash('md5').update('a').digest('hex')"],
  ])('has hashes: %s', async (imports, expression) => {
    expect(await resultOf(expression, imports)).toBe(createHash('md5').update('a').digest('hex'))
  })

  it('has whatever of cryptography gives the same for the same', async () => {
    const imports = "import { createHmac, createDecipheriv, createCipheriv, timingSafeEqual, pbkdf2Sync } from 'node:crypto'"
    expect(await resultOf("createHmac('sha256', 'k').update('a').digest('hex')", imports)).toBe(
      createHmac('sha256', 'k').update('a').digest('hex'),
    )
    const cipher = "(c => c.update('abc', 'utf8', 'hex') + c.final('hex'))(createCipheriv('aes-128-cbc', '0'.repeat(16), '0'.repeat(16)))"
    const clear = `(d => d.update(${cipher}, 'hex', 'utf8') + d.final('utf8'))(createDecipheriv('aes-128-cbc', '0'.repeat(16), '0'.repeat(16)))`
    expect(await resultOf(clear, imports)).toBe('abc')
    expect(await resultOf("timingSafeEqual(Buffer.from('a'), pbkdf2Sync('a', 'b', 1, 1, 'sha1'))", imports)).toBe(false)
  })

  it.each([
    ["import { randomUUID } from 'node:crypto'", 'randomUUID()', 'crypto.randomUUID is not there: an extractor never sees chance'],
    ["import crypto from 'node:crypto'", "crypto.randomBytes(4).toString('hex')", 'crypto.randomBytes is not there'],
    ["import * as crypto from 'crypto'", 'crypto.randomInt(5)', 'crypto.randomInt is not there'],
    ["import { webcrypto } from 'node:crypto'", 'webcrypto.getRandomValues(new Uint8Array(2))', 'crypto.webcrypto is not there'],
    ["import { generateKeyPairSync } from 'node:crypto'", "generateKeyPairSync('ed25519')", 'crypto.generateKeyPairSync is not there'],
    ["import { performance } from 'node:perf_hooks'", 'performance.timeOrigin + performance.now()', 0],
    ["import { monitorEventLoopDelay } from 'node:perf_hooks'", 'monitorEventLoopDelay()', 'perf_hooks.monitorEventLoopDelay is not there'],
    ["import { setTimeout } from 'node:timers'", 'setTimeout(() => 1, 1)', 'timers.setTimeout is not there'],
    ["import timers from 'timers/promises'", 'timers.setTimeout(1)', 'timers/promises.setTimeout is not there'],
    ["import { hostname } from 'node:os'", 'hostname()', 'os.hostname is not there: an extractor never sees where it runs'],
    ["import os from 'os'", 'os.EOL', '\n'],
    ["import process from 'node:process'", 'Object.keys(process.env).length', 0],
    ["import * as process from 'node:process'", 'Object.keys(process.env).length', 0],
    ["import { hrtime } from 'node:process'", 'hrtime()', 'this part of process is not there'],
    ["import http from 'node:http'", "http.get('http://x')", 'node:http.get is not there: an extractor never sees the network'],
    ["import * as http from 'node:http'", "http.get('http://x')", 'node:http.get is not there: an extractor never sees the network'],
  ])('has no chance, no clock and no machine: %s; %s', async (imports, expression, expected) => {
    const value = await resultOf(expression, imports)
    if (typeof expected === 'number' || expected === '\n') expect(value).toBe(expected)
    else expect(value).toContain(expected)
  })

  it('may be imported and not used, as libraries do', async () => {
    const imports = "import 'node:timers'; import * as os from 'node:os'; const later = os.cpus; import { randomUUID } from 'node:crypto'"
    expect(await resultOf('[typeof later, typeof randomUUID].length', imports)).toBe(2)
  })
})

describe('the global object of an extractor', () => {
  it.each([
    ['globalThis.Date.now()', FETCHED_AT],
    ['new globalThis.Date().getTime()', FETCHED_AT],
    ['new (new Date().constructor)().getTime()', FETCHED_AT],
    ['new (Object.getPrototypeOf(new Date()).constructor)().getTime()', FETCHED_AT],
    ['globalThis.performance.now()', 0],
    ['global.Date === Date && globalThis.globalThis === global', true],
    ['"Map" in globalThis && Object.hasOwn(globalThis, "Map") && globalThis.Map === Map', true],
    ['globalThis.parseInt("5") + globalThis.structuredClone(1) + globalThis.atob("MQ==")', '61'],
    ['new Date() instanceof Date && new Date().constructor === Date && Date.name === "Date"', true],
    ['structuredClone(new Date(5)) instanceof Date', true],
    [
      '(Day => [new Date(0) instanceof Day, new Day() instanceof Day, new Day() instanceof Date].join())(class extends Date {})',
      'false,true,true',
    ],
    ['Object.getOwnPropertyNames(globalThis).filter((name) => /^(fetch|Date|Map|globalThis)$/.test(name)).length', 4],
    ['Object.getOwnPropertyNames(globalThis).every((name) => Object.hasOwn(globalThis, name))', true],
    [
      'structuredClone(1) + atob("MQ==") + new TextDecoder().decode(Buffer.from("a")) + typeof eval + typeof neverThere',
      '11afunctionundefined',
    ],
    ['new (class extends Date {})(5).getTime()', 5],
    ['new Date(2024, 0, 2).getDate() + Date.UTC(1970, 0, 1) + Date(1).length', 2 + new Date().toString().length],
  ])('has what the names themselves have: %s', async (expression, expected) => {
    expect(await resultOf(expression)).toBe(expected)
  })

  it('has a chance that repeats itself', async () => {
    expect(await resultOf('globalThis.Math.random()')).toBe(await resultOf('Math.random()'))
  })

  it.each([
    'globalThis.fetch("http://x")',
    'globalThis.crypto.randomUUID()',
    'global.setTimeout(() => 1, 1)',
    'globalThis.process.hrtime()',
  ])('has no more than they: %s', async (expression) => {
    expect(await resultOf(expression)).toMatch(/is not there: an extractor never sees/)
  })

  it('keeps what is written to it from everybody else', async () => {
    const names = 'globalThis.Date = 1, globalThis.navigator = 2, globalThis.madeUp = 3'
    expect(await resultOf(`(${names}, [globalThis.Date, globalThis.navigator, globalThis.madeUp].join())`)).toBe('1,2,3')
    expect(await resultOf('typeof globalThis.Date + typeof globalThis.madeUp')).toBe('functionundefined')
    expect('madeUp' in globalThis).toBe(false)
  })
})

describe('what a module writes to its global object', () => {
  it('is a name of its own, in every file of it and on every page', async () => {
    writeFileSync(join(folder, 'prism.cjs'), 'global.Prism = { languages: {} }')
    writeFileSync(join(folder, 'prism-json.cjs'), "Prism.languages.json = 'json'")
    expect(await resultOf('Prism.languages.json', "import './prism.cjs'; import './prism-json.cjs'; declare const Prism: any")).toBe('json')
    expect(await resultOf('helper(1)', 'globalThis.helper = (n) => n + 1')).toBe(2)
    expect(await resultOf('cache.size', 'declare global { var cache: Map<string, string> }; globalThis.cache ??= new Map()')).toBe(0)
    expect(await resultOf('fetch(5)', 'globalThis.fetch = (n) => n')).toBe(5)
    expect(await resultOf('(Object.defineProperty(globalThis, "lazy", { get: () => 6 }), lazy)')).toBe(6)
    expect(await resultOf('(globalThis.late = 1, late += 1, globalThis.late)')).toBe(2)
  })

  it('is a name of nobody else', async () => {
    expect(await resultOf('(globalThis.mine = 1, globalThis.Buffer = 2, mine + Buffer)')).toBe(3)
    expect(await resultOf('typeof mine + typeof Buffer')).toBe('undefinedfunction')
    expect('mine' in globalThis).toBe(false)
  })

  it('and deletes from it is gone, and not the real thing', async () => {
    const names = "['Date', 'fetch', 'crypto', 'process', 'performance', 'Buffer']"
    expect(await resultOf(`${names}.map((name) => delete globalThis[name] && typeof globalThis[name] + (name in globalThis)).join()`)).toBe(
      Array.from({ length: 6 }, () => 'undefinedfalse').join(),
    )
    expect(await resultOf('(delete globalThis.Date, Date.now())')).toBe(FETCHED_AT)
    expect(await resultOf('(delete globalThis.fetch, fetch("http://x"))')).toContain('fetch is not there')
    expect(await resultOf('(globalThis.mine = 1, delete globalThis.mine, typeof mine)')).toBe('undefined')
    expect(typeof globalThis.fetch + typeof globalThis.Buffer).toBe('functionfunction')
  })
})

describe('a function that is called of nothing', () => {
  const counting = (body: string): void => writeFileSync(join(folder, 'count.cjs'), `module.exports = function () { ${body} }`)
  const imports = "import count from './count.cjs'; function own() { return this }"

  it('has no global object for its `this`, which all modules would share from page to page', async () => {
    expect(await resultOf('typeof own()', imports)).toBe('undefined')
    counting('return this === undefined ? 0 : (this.leftByPage = (this.leftByPage || 0) + 1)')
    expect([await resultOf('count()', imports), await resultOf('count()', imports)]).toEqual([0, 0])
    expect('leftByPage' in globalThis).toBe(false)
  })

  it('makes no name of the global object by writing to one that nobody declared', async () => {
    counting('leftByPage = 1')
    expect(await resultOf('count()', imports)).toContain('ReferenceError: leftByPage is not defined (at ')
    expect(await resultOf('(() => { mistyped = 1 })()', 'declare let mistyped: number')).toContain('mistyped is not defined')
    expect('leftByPage' in globalThis || 'mistyped' in globalThis).toBe(false)
  })

  it('is what libraries expect that look for a global object in every way', async () => {
    writeFileSync(join(folder, 'umd.cjs'), '(function (root) { root.Umd = 1 })(this); try { Late = 2 } catch { globalThis.Late = 2 }')
    expect(await resultOf('Umd.Umd + Late', "import Umd from './umd.cjs'; declare const Late: number")).toBe(3)
  })
})

describe('the clock of an extractor', () => {
  it.each([
    'new Intl.DateTimeFormat("en-GB").format()',
    'Intl.DateTimeFormat("en-GB").format(undefined)',
    'new Intl.DateTimeFormat("en-GB").formatToParts().map(({ value }) => value).join("")',
    '[undefined].map(new Intl.DateTimeFormat("en-GB").format)[0]',
    'new (class extends Intl.DateTimeFormat {})("en-GB").format()',
    'new Date().toLocaleDateString("en-GB")',
  ])('stands at the time of the page: %s', async (expression) => {
    // In the time zone in which the tests run.
    expect(await resultOf(expression)).toBe(new Intl.DateTimeFormat('en-GB').format(FETCHED_AT))
  })

  it('is asked only where no time is given, and formats are the real ones', async () => {
    // The day of epoch 0 is that of the time zone in which the tests run.
    const epoch = new Intl.DateTimeFormat('en-GB').format(0)
    expect(await resultOf('new Intl.DateTimeFormat("en-GB").format(0)')).toBe(epoch)
    expect(await resultOf('new Intl.DateTimeFormat("en-GB").format(null)')).toBe(epoch)
    expect(await resultOf('new Intl.DateTimeFormat("en-GB") instanceof Intl.DateTimeFormat')).toBe(true)
    expect(await resultOf('Intl.DateTimeFormat.supportedLocalesOf("en-GB").length')).toBe(1)
    expect(await resultOf('new Intl.NumberFormat("de").format(1299.5) + Intl.getCanonicalLocales("EN-us")')).toBe('1.299,5en-US')
  })
})
