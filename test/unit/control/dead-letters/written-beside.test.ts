import { expect, it } from 'vitest'
import { writtenBeside } from '../../../../src/control/dead-letters/written-beside.ts'
import type { Command } from '../../../../src/message/generated/types.ts'
import type { DeadLetterInfo } from '../../../../src/message/read-dead-letter.ts'

const told = (subject: string, payload: object): Command => ({ subject, payload: JSON.stringify(payload) }) as Command
const commands = [
  told('extractor:book:1', {}),
  told('extractor:book:2', { tried: true }),
  told('replay:s', { shadow: { topic: 'records.shadow.s' } }),
  told('replay:i', { ranges: [] }),
]
const control = { get: (subject: string) => commands.find((command) => command.subject === subject) }
const letter = (fields: Partial<DeadLetterInfo>): DeadLetterInfo => fields as DeadLetterInfo

it('a dead letter of a candidate, which names no replay, was written beside live work until its version is live', () => {
  expect(writtenBeside(control, letter({ extractor: 'book:2' }))).toContain('book:2')
  expect(writtenBeside(control, letter({ extractor: 'book:1' }))).toBeUndefined()
  expect(writtenBeside(control, letter({ extractor: 'book:3' }))).toBeUndefined()
  expect(writtenBeside(control, letter({}))).toBeUndefined()
})

it('so was one of a shadow, and none of a replay in place', () => {
  expect(writtenBeside(control, letter({ extractor: 'book:1', replay: 's' }))).toContain('the shadow replay s')
  expect(writtenBeside(control, letter({ extractor: 'book:1', replay: 'i' }))).toBeUndefined()
})
