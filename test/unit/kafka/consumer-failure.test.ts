import { describe, expect, it } from 'vitest'
import { fatalCrash } from '../../../src/kafka/consumer-failure.ts'

const thrown = (name: string, fields: object = {}): Error => Object.assign(new Error('text'), { name, retriable: false, ...fields })

const reader = { group: 'g', topics: ['urls'], connection: { brokers: [], clientId: 'test' } }

describe('the crash of a consumer', () => {
  it.each([
    ['a coordinator that no broker knows, since the last one has just gone', thrown('KafkaJSGroupCoordinatorNotFound')],
    ['retries that were used up', thrown('KafkaJSNumberOfRetriesExceeded')],
    ['a lock that was not had in time while it reconnects', thrown('KafkaJSLockTimeout')],
    ['a broker that answers that it does not know what is wrong', thrown('KafkaJSProtocolError', { type: 'UNKNOWN' })],
    ['a broker that is not there', thrown('KafkaJSProtocolError', { type: 'BROKER_NOT_AVAILABLE' })],
    ['a member that the group has forgotten', thrown('KafkaJSProtocolError', { type: 'UNKNOWN_MEMBER_ID' })],
    ['a connection that was lost in the wrong moment', new Error('Broker not connected')],
    ['a cause that may pass', thrown('KafkaJSNonRetriableError', { cause: Object.assign(new Error('closed'), { retriable: true }) })],
  ])('goes on with a new one after %s', (_what, error) => {
    expect(fatalCrash(error, reader)).toBeUndefined()
  })

  it.each([
    ['credentials that are wrong', thrown('KafkaJSSASLAuthenticationError'), 'KafkaJSSASLAuthenticationError'],
    ['a codec that is not installed', thrown('KafkaJSNotImplemented', { message: 'ZSTD compression not implemented' }), 'ZSTD'],
  ])('ends with the reason after %s', (_what, error, reason) => {
    expect(fatalCrash(error, reader)).toMatchObject({ code: 'KAFKA_CONSUMER_CRASHED', message: expect.stringContaining(reason) })
  })

  it('ends as denied after a group that this user may not join', () => {
    const crash = fatalCrash(thrown('KafkaJSProtocolError', { type: 'GROUP_AUTHORIZATION_FAILED' }), reader)
    expect(crash).toMatchObject({ code: 'KAFKA_DENIED', message: expect.stringContaining('GROUP_AUTHORIZATION_FAILED') })
  })
})
