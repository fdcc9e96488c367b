import { expect, it } from 'vitest'
import { headerTime } from '../../../src/message/header-names.ts'

const timeOf = (text: string): number | undefined => headerTime({ due: Buffer.from(text) }, 'due')

it('reads a time from a header where a Date can hold it, and nothing from what strangers may write there', () => {
  expect(timeOf('1767225600000')).toBe(1_767_225_600_000)
  expect(timeOf('8640000000000000')).toBe(8_640_000_000_000_000)
  for (const text of ['8640000000000001', '99999999999999999999', '1e300', '-1', '', 'soon']) expect(timeOf(text)).toBeUndefined()
  expect(headerTime({}, 'due')).toBeUndefined()
})
