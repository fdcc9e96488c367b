import { expect, it } from 'vitest'
import { checkLocale } from '../../../../src/extract/values/known-locale.ts'

it('a language that is known is taken, with its country, script or alphabet', () => {
  for (const locale of ['de', 'de-AT', 'fr-CH', 'pt-BR', 'sr-Latn', 'zh-Hant-TW', 'no']) expect(() => checkLocale(locale)).not.toThrow()
})

it.each([
  ['cz', '"cz" is no language that is known; did you mean cs-CZ?'],
  ['dk', '"dk" is no language that is known; did you mean da-DK?'],
  ['gr', '"gr" is no language that is known; did you mean el-GR?'],
  ['jp', '"jp" is no language that is known; did you mean ja-JP?'],
  ['de_DE', '"de_DE" is no language that is known; did you mean de-DE?'],
  ['german', '"german" is no language that is known; expected one such as de-DE'],
  ['xx', '"xx" is no language that is known; expected one such as de-DE'],
  ['', '"" is no language that is known; expected one such as de-DE'],
])('one that is not, which would be that of the machine, is refused with the one that was meant: %s', (locale, message) => {
  expect(() => checkLocale(locale)).toThrow(message)
})
