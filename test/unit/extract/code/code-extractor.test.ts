import { afterEach, describe, expect, it } from 'vitest'
import { type LoadedCode, loadCode, putBackBetweenPages } from '../../../../src/extract/code/code-extractor.ts'
import type { ExtractorInput } from '../../../../src/extract/define-extractor.ts'
import { eventually } from '../../../support/eventually.ts'

const { map } = Array.prototype
const { parse } = JSON

const loaded = (body: string, before = ''): LoadedCode =>
  loadCode({
    file: '/x/it.js',
    shown: 'it.js',
    sourceMap: JSON.stringify({ version: 3, sources: [], mappings: '' }),
    code: `${before}; exports.default = { name: 'it', version: 1, schema: { type: 'record', name: 'It', fields: [] }, extract() { ${body} } }`,
  })
const extracted = (code: LoadedCode): ReturnType<LoadedCode['extract']> =>
  code.extract({ page: { fetchedAt: 0 } } as ExtractorInput, '00000000')

afterEach(() => {
  Object.defineProperty(Array.prototype, 'map', { value: map })
  Object.defineProperty(JSON, 'parse', { value: parse })
})

describe('code that changes the language', () => {
  it('is named with what it threw as well', () => {
    const code = loaded("Array.prototype.map = () => []; throw new TypeError('no')")
    expect(extracted(code)).toEqual({
      ok: false,
      code: 'EXTRACT_FAILED',
      message:
        'the extractor threw TypeError: no, and changed Array.prototype.map, which all extractors of the process share; it was put back',
    })
    expect(Array.prototype.map).toBe(map)
  })

  it('is named where it can not be loaded for something else as well', () => {
    expect(() => loaded('', "JSON.parse = () => 0; throw new Error('no')")).toThrow(
      /the module can't be loaded: no\n.*the module changed JSON\.parse, which all/,
    )
    expect(JSON.parse).toBe(parse)
  })

  it('after its page is put back before the next one, again and again', async () => {
    expect(extracted(loaded('return []'))).toMatchObject({ ok: true })
    expect(putBackBetweenPages()).toEqual([])
    const late = 'const change = () => { Array.prototype.map = () => [] }; '
    expect(extracted(loaded(`${late} Promise.resolve().then(change); return []`))).toMatchObject({ ok: true })
    await null
    expect(Array.prototype.map).not.toBe(map)
    expect(putBackBetweenPages()).toEqual(['Array.prototype.map'])
    expect(Array.prototype.map).toBe(map)
    const channel =
      'const { port1, port2 } = new MessageChannel(); port2.onmessage = () => { change(); port2.close() }; port1.postMessage(0)'
    expect(extracted(loaded(`${late} ${channel}; return []`))).toMatchObject({ ok: true })
    expect(putBackBetweenPages()).toEqual([])
    await eventually(() => Array.prototype.map !== map)
    expect(putBackBetweenPages()).toEqual(['Array.prototype.map'])
  })
})
