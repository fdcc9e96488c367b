import { expect, it } from 'vitest'
import { lookUnlessAway } from '../../../../src/control/runtime/look-unless-away.ts'
import { MillraceError } from '../../../../src/kernel/errors.ts'
import { recordingObserver } from '../../../support/kafka-fixture.ts'

it('a look is left out and told of where the brokers are away, and nothing else is passed over', async () => {
  const { observer, events } = recordingObserver()
  const failing = (error: Error) => lookUnlessAway({ observer }, () => Promise.reject(error))
  expect(await lookUnlessAway({ observer }, async () => 7)).toBe(7)
  expect(events).toEqual([])
  const told: string[] = []
  const away = () => Promise.reject(new MillraceError('KAFKA_REQUEST_FAILED', 'html/3 has no leader'))
  expect(await lookUnlessAway({ observer }, away, ({ message }) => void told.push(message))).toBeUndefined()
  expect(told).toEqual(['html/3 has no leader'])
  expect(await failing(new MillraceError('KAFKA_UNREACHABLE', 'no Kafka broker could be reached'))).toBeUndefined()
  expect(events.map(({ event }) => event)).toEqual(['ReadRetried', 'ReadRetried'])
  await expect(failing(new MillraceError('KAFKA_DENIED', 'not allowed'))).rejects.toMatchObject({ code: 'KAFKA_DENIED' })
  await expect(failing(new TypeError('a defect'))).rejects.toThrow('a defect')
})
