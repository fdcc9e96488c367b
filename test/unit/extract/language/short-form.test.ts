import { describe, expect, it } from 'vitest'
import { parseShortForm } from '../../../../src/extract/language/short-form.ts'

describe('a short form', () => {
  it.each([
    ['h1', 'h1', undefined],
    [' img.cover@src ', 'img.cover', 'src'],
    ['a::attr( href )', 'a', 'href'],
    ['h1::text', 'h1', undefined],
    ['@data-id', '', 'data-id'],
    ['::text', '', undefined],
    ['.', '', undefined],
    [':scope@id', '', 'id'],
    ['a[href="x@y"]', 'a[href="x@y"]', undefined],
    ['a[title=foo@bar]@href', 'a[title=foo@bar]', 'href'],
    ['.my\\@class', '.my\\@class', undefined],
    ['svg@viewBox', 'svg', 'viewBox'],
    ['a@xlink:href', 'a', 'xlink:href'],
  ])('%s is a selector and an attribute', (text, selector, attribute) => {
    expect(parseShortForm(text)).toEqual({ selector, attribute })
  })
})
