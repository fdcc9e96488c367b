import { expect, it } from 'vitest'
import { endsStage, MillraceError } from '../../../src/kernel/errors.ts'

it.each(['KAFKA_DENIED', 'KAFKA_TOPIC_MISSING', 'BLOBS_REFUSED', 'STATE_BROKEN', 'CONTROL_UNREADABLE', 'ABORTED'] as const)(
  'a stage ends by %s, which every message would meet',
  (code) => {
    expect(endsStage(new MillraceError(code, 'no'))).toBe(true)
  },
)

it.each([
  ['what is of one message', new MillraceError('MESSAGE_INVALID', 'no')],
  ['a defect that was foreseen', new MillraceError('INTERNAL', 'no')],
  ['a defect that was not', new TypeError('no')],
  ['a broker that is away', new MillraceError('KAFKA_UNREACHABLE', 'no')],
  ['a store that is away', new MillraceError('STATE_UNAVAILABLE', 'no')],
  ['a partition that another process has', new MillraceError('KAFKA_FENCED', 'no')],
])('a stage does not end by %s', (_, error) => {
  expect(endsStage(error)).toBe(false)
})
