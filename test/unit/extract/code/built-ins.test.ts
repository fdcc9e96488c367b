import { afterEach, describe, expect, it } from 'vitest'
import { BuiltIns } from '../../../../src/extract/code/built-ins.ts'

const builtIns = new BuiltIns()
const { map } = Array.prototype
const { stringify } = JSON

afterEach(() => {
  builtIns.putBack()
})

describe('the built-in functions of the language', () => {
  it('are as they were where nobody has touched them', () => {
    expect(builtIns.putBack()).toEqual([])
  })

  it('are put back and named where they were replaced, deleted or added to', () => {
    Object.assign(Array.prototype, { map: () => [] })
    Object.assign(JSON, { stringify: () => 'x' })
    Object.assign(globalThis, { URL: null })
    Object.assign(Object.prototype, { added: 1 })
    Reflect.deleteProperty(String.prototype, 'trim')
    Object.defineProperty(Map.prototype, 'size', { get: () => 5, configurable: true })
    Object.assign(Object.getPrototypeOf([][Symbol.iterator]()) as object, { next: () => ({ done: true }) })
    const changed = builtIns.putBack()
    expect(new Set(changed)).toEqual(
      new Set([
        ...['Array.prototype.map', 'JSON.stringify', 'URL', 'Object.prototype.added', 'String.prototype.trim', 'Map.prototype.size'],
        'the iterator of lists.next',
      ]),
    )
    expect(Array.prototype.map).toBe(map)
    expect(JSON.stringify).toBe(stringify)
    expect([new URL('http://a.test/').host, ' a '.trim(), new Map().size, Object.keys({})]).toEqual(['a.test', 'a', 0, []])
    expect(builtIns.putBack()).toEqual([])
  })
})
