import { describe, expect, it } from 'vitest'
import { compileSelector } from '../../../../src/extract/language/selector.ts'
import { createPageParser } from '../../../../src/extract/parse-page.ts'

const HTML = '<div id=1 class="card sold"><p class=price>1</p></div><div id=2 class=card><p class=price>2</p></div>'

/** Ids of the cards in which the selector matches something. */
function cardsWith(selector: string): string[] {
  return createPageParser().withPage(HTML, { mode: 'document' }, ({ root }) =>
    compileSelector('.card')
      .all(root)
      .filter((card) => compileSelector(selector).first(card) !== undefined)
      .map((card) => card.attribs.id ?? ''),
  )
}

describe('a selector within an element', () => {
  it.each([
    ['.card .price', ['1', '2']],
    ['body .price', ['1', '2']],
    ['.card:not(.sold) .price', ['2']],
    [':is(.sold) .price', ['1']],
    [':not(:first-child) > .price', ['2']],
  ])('sees what is around the element as it is: %s', (selector, cards) => {
    expect(cardsWith(selector)).toEqual(cards)
  })

  it.each([
    ['> .price', ['1', '2']],
    [':scope > .price', ['1', '2']],
    ['> .card', []],
    [':scope.sold > .price', ['1']],
  ])('begins at the element where it says so: %s', (selector, cards) => {
    expect(cardsWith(selector)).toEqual(cards)
  })
})
