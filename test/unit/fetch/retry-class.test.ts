import { describe, expect, it } from 'vitest'
import type { FailureReason } from '../../../src/fetch/http-exchange.ts'
import { failedOnTheWay, failureClass, statusClass } from '../../../src/fetch/retry-class.ts'

describe('the class of a status', () => {
  it.each([
    100, 200, 204, 206, 300, 304, 400, 401, 402, 403, 404, 405, 406, 409, 410, 411, 418, 421, 422, 424, 426, 431, 451, 499, 501, 505,
  ])('C147: is final for %d', (status) => {
    expect(statusClass(status)).toEqual({ kind: 'final' })
  })

  it.each([408, 425, 500, 502, 504, 506, 507, 508, 511, 520, 522, 530, 599, 600, 999])('C147: is a retry of the URL for %d', (status) => {
    expect(statusClass(status)).toEqual({ kind: 'retry', backsOff: false, factor: 1 })
  })

  it('is a retry that leaves the whole site alone for 429 and 503, the former for longer', () => {
    expect(statusClass(503)).toEqual({ kind: 'retry', backsOff: true, factor: 1 })
    expect(statusClass(429)).toEqual({ kind: 'retry', backsOff: true, factor: 6 })
  })

  it('is something for every number', () => {
    for (let status = -1; status <= 1_000; status += 1) expect(['final', 'retry']).toContain(statusClass(status).kind)
    for (const status of [Number.NaN, Number.POSITIVE_INFINITY]) expect(['final', 'retry']).toContain(statusClass(status).kind)
  })
})

describe('the class of a failure', () => {
  it.each<[FailureReason, string]>([
    ['dns-not-found', 'failed'],
    ['tls-failed', 'failed'],
    ['protocol-error', 'failed'],
    ['address-refused', 'refused'],
    ['dns-failed', 'retry'],
    ['connect-refused', 'retry'],
    ['connect-timeout', 'retry'],
    ['connection-reset', 'retry'],
    ['headers-timeout', 'retry'],
    ['body-timeout', 'retry'],
    ['total-timeout', 'retry'],
    ['network-error', 'retry'],
  ])('C147: %s is %s', (reason, kind) => {
    expect(failureClass(reason)).toBe(kind)
  })

  it('tells what failed on the way to a site from what the site did', () => {
    for (const reason of ['dns-not-found', 'dns-failed', 'tls-failed', 'proxies-out', 'proxy-reset', 'proxy-auth'])
      expect(failedOnTheWay(reason)).toBe(true)
    for (const reason of ['connect-refused', 'headers-timeout', 'protocol-error', 'truncated', null])
      expect(failedOnTheWay(reason)).toBe(false)
  })
})
