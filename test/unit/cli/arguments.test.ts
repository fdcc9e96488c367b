import { describe, expect, it } from 'vitest'
import { parsePlace, port, positive, wholeCount } from '../../../src/cli/arguments.ts'

const refused = (message: string): object => expect.objectContaining({ code: 'USAGE', message }) as object

describe('a number behind a flag', () => {
  it.each(['0', '-3', '1.5', 'NaN', '1e3', '', '0x10'])('is no count where it is %j', (text) => {
    expect(() => wholeCount(text, '--sample')).toThrow(refused(`--sample: ${JSON.stringify(text)} is not a whole number above 0`))
  })

  it.each(['0', '-1', 'Infinity', 'x'])('is no rate where it is %j', (text) => {
    expect(() => positive(text, '--rate')).toThrow(refused(`--rate: "${text}" is not a number above 0`))
  })

  it.each(['0', '65536', '80.5', 'x'])('is no port where it is %j', (text) => {
    expect(() => port(text, '--port')).toThrow(refused(`--port: "${text}" is no port`))
  })
})

describe('a place behind a flag', () => {
  it('is a partition and an offset', () => {
    expect(parsePlace('3:41', {})).toEqual({ partition: 3, offset: 41n })
  })

  it.each(['3', ':1', '1:', '-1:2', '1:2:3', '1234567890:1', '1:1234567890123456789'])(
    'is refused where no message can have it: %j',
    (text) => {
      expect(() => parsePlace(text, { option: '--offset' })).toThrow(refused(`--offset: "${text}" is not PARTITION:OFFSET`))
      expect(() => parsePlace(text, { hint: ', as listed' })).toThrow(refused(`"${text}" is not PARTITION:OFFSET, as listed`))
    },
  )
})
