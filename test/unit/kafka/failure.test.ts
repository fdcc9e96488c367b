import { describe, expect, it } from 'vitest'
import { kafkajsFailure, sendFailure } from '../../../src/kafka/failure.ts'

const thrown = (name: string, fields: object = {}): Error => Object.assign(new Error('text'), { name, ...fields })

describe('failure of a send', () => {
  it.each([
    ['a plain error of a broker that is not connected', new Error('Broker not connected'), 'retry'],
    [
      'a closed connection, not retriable by its class',
      thrown('KafkaJSNonRetriableError', { cause: thrown('KafkaJSConnectionClosedError') }),
      'retry',
    ],
    ['a defect of the client while it reconnects', thrown('TypeError'), 'retry'],
    ['a leader that moved', thrown('KafkaJSProtocolError', { type: 'NOT_LEADER_FOR_PARTITION' }), 'retry'],
    ['too few copies in sync', thrown('KafkaJSProtocolError', { type: 'NOT_ENOUGH_REPLICAS' }), 'retry'],
    [
      'a batch above the limit, inside the story of retries',
      thrown('KafkaJSNumberOfRetriesExceeded', { cause: thrown('KafkaJSProtocolError', { type: 'MESSAGE_TOO_LARGE' }) }),
      'too-large',
    ],
    ['a topic that is missing', thrown('KafkaJSProtocolError', { type: 'UNKNOWN_TOPIC_OR_PARTITION' }), 'unknown-partition'],
    [
      'a partition that the metadata lacks',
      thrown('KafkaJSNumberOfRetriesExceeded', { cause: thrown('KafkaJSMetadataNotLoaded') }),
      'unknown-partition',
    ],
    ['a time that the topic refuses', thrown('KafkaJSProtocolError', { type: 'INVALID_TIMESTAMP' }), 'wrong-time'],
    ['a topic that this user may not write to', thrown('KafkaJSProtocolError', { type: 'TOPIC_AUTHORIZATION_FAILED' }), 'denied'],
    ['a record that breaks a rule of the broker', thrown('KafkaJSProtocolError', { type: 'INVALID_RECORD' }), 'refused'],
    ['nothing at all', undefined, 'retry'],
  ])('%s', (_what, error, kind) => {
    expect(sendFailure(error).kind).toBe(kind)
  })

  it('takes the first reason of an aggregate', () => {
    const aggregate = Object.assign(new Error('Topic creation errors'), {
      errors: [thrown('KafkaJSCreateTopicError', { type: 'INVALID_CONFIG' })],
    })
    expect(kafkajsFailure(aggregate).type).toBe('INVALID_CONFIG')
  })

  it('survives a cause that goes in circles', () => {
    const circle: { cause?: unknown; message: string } = { message: 'round' }
    circle.cause = circle
    expect(kafkajsFailure(circle).message).toBe('round')
  })
})
