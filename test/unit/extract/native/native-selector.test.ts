import { describe, expect, it } from 'vitest'
import { nativeSelector } from '../../../../src/extract/native/native-selector.ts'

function outcome(text: string): string {
  const selector = nativeSelector(text)
  return selector.ok ? selector.css : `no: ${selector.reason}`
}

describe('a selector for the native engine', () => {
  it.each([
    ['H1', 'h1'],
    ['.card .Price', '.card .Price'],
    ['#main>p+p , li', '#main > p + p, li'],
    ['a[HREF]', 'a[href]'],
    ["[type='x'][lang|=en]", '[type="x"][lang|="en"]'],
    ['[a^=b][a$=c][a*=d]', '[a^="b"][a$="c"][a*="d"]'],
    ['[a=B i][a=B s]', '[a="B" i][a="B" s]'],
    ['li:NTH-child( 2N + 1 )', 'li:nth-child(2n+1)'],
    ['p:not(.x, [y]):first-child', 'p:not(.x, [y]):first-child'],
  ])('is written anew: %s', (text, css) => {
    expect(outcome(text)).toBe(css)
  })

  it.each([
    ['p ~ a', 'the combinator ~'],
    ['> td', 'a combinator at its beginning'],
    [':is(p)', ':is'],
    ['div:has(p)', ':has'],
    ['p:contains(x)', ':contains'],
    ['p:first', ':first'],
    ['input:checked', ':checked'],
    ['p:not(div p)', 'a combinator in :not()'],
    ['[rel~=next]', 'the operator ~='],
    ['[rel!=next]', 'the operator !='],
    ['[title="ä"]', 'the value "ä"'],
    ['.größe', 'the name größe'],
    ['.lg\\:prose-xl', 'the name lg:prose-xl'],
    ['esi\\:foo', 'the tag esi:foo'],
    ['[xmlns]', 'the attribute xmlns'],
    ['p::before', 'pseudo-element'],
    ['svg|a', 'the tag a'],
    ['p:nth-child(2 of .x)', ':nth-child'],
  ])('is none where the engines differ, or may: %s', (text, reason) => {
    expect(outcome(text)).toBe(`no: it has ${reason}`)
  })

  it('is none where it does not parse', () => {
    expect(outcome('p[')).toBe('no: it does not parse')
  })
})
