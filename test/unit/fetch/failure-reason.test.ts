import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AddressRefused } from '../../../src/fetch/address-guard.ts'
import { failureReason } from '../../../src/fetch/failure-reason.ts'

const coded = (code: string, options: { name?: string; cause?: unknown } = {}): Error =>
  Object.assign(
    new Error(`it failed: ${code}`, { cause: options.cause }),
    { code },
    options.name === undefined ? {} : { name: options.name },
  )

describe('the reason of a failure', () => {
  it.each([
    ['ENOTFOUND', 'dns-not-found'],
    ['EAI_AGAIN', 'dns-failed'],
    ['ESERVFAIL', 'dns-failed'],
    ['ECONNREFUSED', 'connect-refused'],
    ['EHOSTUNREACH', 'connect-refused'],
    ['ENETUNREACH', 'connect-refused'],
    ['ETIMEDOUT', 'connect-timeout'],
    ['UND_ERR_CONNECT_TIMEOUT', 'connect-timeout'],
    ['ECONNRESET', 'connection-reset'],
    ['EPIPE', 'connection-reset'],
    ['UND_ERR_SOCKET', 'connection-reset'],
    ['UND_ERR_HEADERS_TIMEOUT', 'headers-timeout'],
    ['UND_ERR_BODY_TIMEOUT', 'body-timeout'],
    ['UND_ERR_HEADERS_OVERFLOW', 'protocol-error'],
    ['UND_ERR_INVALID_ARG', 'protocol-error'],
    ['HPE_INVALID_CONSTANT', 'protocol-error'],
    ['CERT_HAS_EXPIRED', 'tls-failed'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'tls-failed'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls-failed'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls-failed'],
    ['EPROTO', 'tls-failed'],
    ['E_NEW_IN_A_LATER_NODE', 'network-error'],
    ['constructor', 'network-error'],
    ['toString', 'network-error'],
  ])('of %s is %s, and the code is in its text', (code, reason) => {
    const said = failureReason(coded(code))
    expect(said.reason).toBe(reason)
    expect(said.detail).toContain(code)
  })

  it('is found in a cause, and in the attempts behind several addresses', () => {
    expect(failureReason(new Error('fetch failed', { cause: coded('ECONNRESET') })).reason).toBe('connection-reset')
    expect(failureReason(new AggregateError([coded('ENETUNREACH'), coded('ETIMEDOUT')])).reason).toBe('connect-refused')
    expect(failureReason(Object.assign(new Error('bad'), { name: 'HTTPParserError' })).reason).toBe('protocol-error')
  })

  it('of a refused address names it, and what would allow it', () => {
    const said = failureReason(new AddressRefused('a.example', '10.0.0.1', 'private'))
    expect(said.reason).toBe('address-refused')
    expect(said.detail).toMatch(/a\.example is at 10\.0\.0\.1.*private.*fetch\.allowAddresses/)
  })

  it('is found for anything that can be thrown', () => {
    const circular = new Error('round')
    circular.cause = circular
    expect(failureReason(circular).reason).toBe('network-error')
    fc.assert(
      fc.property(fc.anything(), (thrown) => {
        expect(typeof failureReason(thrown).reason).toBe('string')
      }),
    )
  })
})
