import { expect, it } from 'vitest'
import { trialOf } from '../../../src/control/trial-letters.ts'
import type { Command } from '../../../src/message/generated/types.ts'
import type { DeadLetterInfo } from '../../../src/message/read-dead-letter.ts'

const told = (subject: string, payload: object): Command => ({ subject, payload: JSON.stringify(payload) }) as Command
const commands = [
  told('extractor:book:1', {}),
  told('extractor:book:2', { tried: true }),
  told('replay:s', { shadow: { topic: 'records.shadow.s' } }),
  told('replay:i', { ranges: [] }),
]
const control = { get: (subject: string) => commands.find((command) => command.subject === subject) }
const letter = (fields: Partial<DeadLetterInfo>): DeadLetterInfo => fields as DeadLetterInfo

it('a dead letter of a candidate, which names no replay, is of a trial until its version is live', () => {
  expect(trialOf(control, letter({ extractor: 'book:2' }))).toContain('book:2')
  expect(trialOf(control, letter({ extractor: 'book:1' }))).toBeUndefined()
  expect(trialOf(control, letter({ extractor: 'book:3' }))).toBeUndefined()
  expect(trialOf(control, letter({}))).toBeUndefined()
})

it('one of a shadow is of a trial, one of a replay in place is not', () => {
  expect(trialOf(control, letter({ extractor: 'book:1', replay: 's' }))).toContain('the shadow replay s')
  expect(trialOf(control, letter({ extractor: 'book:1', replay: 'i' }))).toBeUndefined()
})
