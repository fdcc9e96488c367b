import { describe, expect, it } from 'vitest'
import type { FailureReason } from '../../../src/fetch/http-exchange.ts'
import {
  FAILURE_REASONS,
  type FailureClass,
  failedOnTheWay,
  failureClass,
  siteFailure,
  statusClass,
} from '../../../src/fetch/retry-class.ts'
import type { FailureKind } from '../../../src/state/state-store.ts'

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

/** What a failure means for its task, what it says of its site, and whether it failed on the way there. */
const FAILURES: Readonly<Record<FailureReason, readonly [task: FailureClass, site: FailureKind | undefined, onTheWay: boolean]>> = {
  'dns-not-found': ['failed', undefined, true],
  'dns-failed': ['retry', 'connect', true],
  'connect-refused': ['retry', 'connect', false],
  'connect-timeout': ['retry', 'connect', false],
  'connection-reset': ['retry', 'timeout', false],
  'headers-timeout': ['retry', 'timeout', false],
  'body-timeout': ['retry', 'timeout', false],
  'total-timeout': ['retry', 'timeout', false],
  'tls-failed': ['failed', undefined, true],
  'protocol-error': ['failed', undefined, false],
  'address-refused': ['refused', undefined, false],
  'proxy-down': ['retry', undefined, true],
  'proxy-failed': ['retry', undefined, true],
  'proxy-auth': ['retry', undefined, true],
  'proxy-refused': ['retry', undefined, true],
  'proxy-unreached': ['retry', undefined, true],
  'proxy-timeout': ['retry', undefined, true],
  'proxy-reset': ['retry', undefined, true],
  'proxies-out': ['retry', undefined, true],
  'network-error': ['retry', undefined, false],
}

describe('the class of a failure', () => {
  it('is here for every reason', () => {
    expect(FAILURE_REASONS.toSorted()).toEqual(Object.keys(FAILURES).sort())
  })

  it.each(FAILURE_REASONS)('C147: of %s is what it says of its task, its site and the way there', (reason) => {
    expect([failureClass(reason), siteFailure(reason), failedOnTheWay(reason)]).toEqual(FAILURES[reason])
  })

  it('is none on the way for what is no failure', () => {
    for (const reason of ['truncated', 'toString', null]) expect(failedOnTheWay(reason)).toBe(false)
  })
})
