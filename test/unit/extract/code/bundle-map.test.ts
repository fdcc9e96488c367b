import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { bundleModule } from '../../../../src/extract/code/bundle.ts'
import { BundleMap } from '../../../../src/extract/code/bundle-map.ts'
import { loadCode } from '../../../../src/extract/code/code-extractor.ts'
import type { ExtractorInput } from '../../../../src/extract/define-extractor.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-bundle-map-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function write(name: string, text: string): string {
  const path = join(folder, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
  return path
}

/** Shape: the module as it is sent to an extraction process, called as `shown`. */
async function moduleOf(name: string, text: string, shown = `here/${name}`) {
  const file = write(name, text)
  const { code, sourceMap } = await bundleModule(file)
  return { file, shown, code, sourceMap }
}

/** Place of a key as `line:column`, and what stands there in the text. */
async function placeOf(text: string, path: readonly (string | number)[], name = 'x.ts'): Promise<string> {
  const place = new BundleMap(await moduleOf(name, text)).property(path)
  if (place === undefined) return 'none'
  const line = text.split('\n')[place.line - 1] ?? ''
  return `${place.line}:${place.column} ${line.slice(place.column - 1).slice(0, 12)}`
}

async function loadFault(text: string, name = 'fault.ts'): Promise<string> {
  const module = await moduleOf(name, text)
  try {
    loadCode(module)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
  return 'loaded'
}

describe('a key of the default export', () => {
  const definition = `{
  name: 'Book', version: 2, /* version: 9 */
  match: { hosts: ['a', 'b'], paths: [
    '/x' ] },
  "topic": \`}\n  schema: \${'\`'} , version: \`,
  schema: { type: 'record', fields: [{ name: 'a' }, { name: 'b', type: 'strin' }] },
  extract({ $ }) { return /[/}]schema:/.test($) ? [{ key: 1, data: { schema: 3 } }] : [] },
}`
  it.each([
    ['as an object', `export default ${definition}`],
    ['through defineExtractor', `import { defineExtractor } from 'millrace'\nexport default defineExtractor(${definition})`],
    ['through names', `const schema = 1\nconst first = ${definition}\nconst second = first\nexport { second as default }`],
    ['as CommonJS', `module.exports = ${definition}`],
  ])('is found where the author wrote it, exported %s', async (kind, text) => {
    const name = kind === 'as CommonJS' ? 'x.cjs' : 'x.ts'
    const at = async (...path: (string | number)[]): Promise<string> => (await placeOf(text, path, name)).replace(/^\d+:/, '')
    expect(await at('version')).toBe('17 version: 2, ')
    expect(await at('match', 'hosts', 1)).toBe("25 'b'], paths:")
    expect(await at('match', 'paths', 0)).toBe("5 '/x' ] },")
    expect(await at('topic')).toBe('3 "topic": `}')
    expect(await at('schema')).toBe('3 schema: { ty')
    expect(await at('schema', 'fields', 1, 'type')).toBe("66 type: 'strin")
    expect(await at('extract')).toBe('3 extract({ $ ')
  })

  it('is found in a file that the module imports', async () => {
    write('shared/schema.ts', "export const schema = {\n  type: 'recrd' }\n")
    const module = await moduleOf('x.ts', "import { schema } from './shared/schema.ts'\nexport default { name: 'x', schema }")
    const map = new BundleMap(module)
    expect(map.property(['schema'])).toMatchObject({ file: 'here/x.ts', line: 2, column: 29 })
    expect(map.property(['schema', 'type'])).toEqual({ source: 'shared/schema.ts', file: 'here/shared/schema.ts', line: 2, column: 3 })
  })

  it('that is not there is pointed at by what it is missing in, and by nothing where there is no export', async () => {
    expect(await placeOf("const a = 1\nexport default { name: 'x',\n  match: {} }", ['version'])).toBe('2:1 export defau')
    expect(await placeOf("const a = 1\nexport default { name: 'x',\n  match: {} }", ['match', 'hosts', 0])).toBe('3:3 match: {} }')
    expect(await placeOf('export const a = 1', ['version'])).toBe('none')
    expect(await placeOf('const make = () => ({})\nexport default { ...make() }', ['version'])).toBe('2:1 export defau')
  })
})

describe('a fault while a module loads', () => {
  it('is told with the line and column that threw, in the file that has it', async () => {
    write(
      'lib/price.ts',
      "export function price(text: string): number {\n\n  if (text === '') throw new TypeError('no price')\n  return 1\n}\n",
    )
    expect(await loadFault("throw new Error('at once')")).toBe("here/fault.ts:1:7 the module can't be loaded: at once")
    expect(await loadFault('// one\ninterface A { a: string }\nconst undone: any = null\n  undone.a.b\nexport default {}')).toMatch(
      /^here\/fault\.ts:4:10 the module can't be loaded: TypeError: Cannot read properties of null \(reading 'a'\)$/,
    )
    expect(await loadFault("import { price } from './lib/price.ts'\n\nexport default { version: price('') }")).toBe(
      "here/lib/price.ts:3:26 the module can't be loaded: TypeError: no price (at price (lib/price.ts:3:26), called from fault.ts:3:27)",
    )
  })

  it('has the place of a pattern that can not be compiled', async () => {
    expect(await loadFault('// one\nexport const pattern = /(/')).toMatch(
      /^here\/fault\.ts:2:24 the module can't be loaded: SyntaxError: Invalid/,
    )
  })

  it('points at the own line behind a package, and at no line for what is no error', async () => {
    write('node_modules/parts/index.js', "export const part = () => { throw new Error('deep') }\n")
    expect(await loadFault("import { part } from 'parts'\nexport default [part()]")).toBe(
      "here/fault.ts:2:17 the module can't be loaded: deep (at part (node_modules/parts/index.js:1:35), called from fault.ts:2:17)",
    )
    expect(await loadFault("throw 'a text'")).toBe("here/fault.ts: the module can't be loaded: a text")
  })

  it('of a file that is imported has the name of that file', async () => {
    write('lib/broken.ts', '\nexport const = 3\n')
    const file = write('imports.ts', "import './lib/broken.ts'")
    await expect(bundleModule(file)).rejects.toMatchObject({
      code: 'EXTRACTOR_INVALID',
      message: `${join(folder, 'lib/broken.ts')}:2:14 Expected identifier but found "="`,
      context: { file: join(folder, 'lib/broken.ts'), line: 2, column: 14 },
    })
  })
})

describe('an export that is no extractor', () => {
  it('has each of its faults where it stands, in the order of the file', async () => {
    expect(
      await loadFault(
        "export default {\n  verson: 1, version: 0,\n  match: { host: ['x'] },\n  schema: {},\n  extract: 3,\n  name: 'x',\n}",
      ),
    ).toBe(
      [
        'here/fault.ts:2:3 unknown key "verson": did you mean "version"?',
        'here/fault.ts:2:14 "version" is 0; expected number to be >=1',
        'here/fault.ts:3:12 unknown key "host": did you mean "hosts"?',
        'here/fault.ts:5:3 "extract" is 3; expected a function',
      ].join('\n'),
    )
  })

  it('is told as one where nothing of an extractor is there', async () => {
    const expected = 'its default export is no extractor; expected `export default defineExtractor({ … })`'
    expect(await loadFault('export const a = 1')).toBe(`here/fault.ts: ${expected}`)
    expect(await loadFault('const a = 1\nexport default 3')).toBe(`here/fault.ts:2:1 ${expected}`)
  })
})

describe('what an extractor throws on a page', () => {
  it('names the calls in the files of its author, innermost first', async () => {
    write('lib/stock.ts', 'export const stock = (text: string): number => {\n  throw new RangeError(`no stock in ${text}`)\n}\n')
    const code = loadCode(
      await moduleOf(
        'book.ts',
        `import { stock } from './lib/stock.ts'
export default {
  name: 'book', version: 1, schema: { type: 'record', name: 'B', fields: [] },
  extract({ $ }: any) {
    return ['x'].map((text) => stock(text))
  },
}`,
      ),
    )
    const input = { page: { fetchedAt: 0 } } as ExtractorInput
    expect(code.extract(input, '00000000')).toEqual({
      ok: false,
      code: 'EXTRACT_FAILED',
      message:
        'the extractor threw RangeError: no stock in x (at stock (lib/stock.ts:2:9), called from book.ts:5:32, called from extract (book.ts:5:18))',
    })
  })
})
