import { expect, it } from 'vitest'
import type { HttpResponse } from '../../../src/fetch/http-exchange.ts'
import { type PaceReport, paceReport } from '../../../src/fetch/pace-report.ts'

const answer = (status: number, truncated: HttpResponse['truncated'] = null): HttpResponse =>
  ({ kind: 'response', status, truncated, ttfbMs: 30, connectMs: 10 }) as HttpResponse

const SUCCESS: PaceReport = { kind: 'success', latencyMs: 20 }
const BROKEN: PaceReport = { kind: 'failure', failure: 'server' }

it.each<[number, PaceReport]>([
  ...[200, 301, 304, 403, 404, 408, 425, 451, 501, 505].map((status): [number, PaceReport] => [status, SUCCESS]),
  ...[500, 502, 504, 522, 600].map((status): [number, PaceReport] => [status, BROKEN]),
  [429, { kind: 'overload' }],
  [503, { kind: 'overload', failure: 'server' }],
])('what status %d says of the pace of its site', (status, report) => {
  expect(paceReport(answer(status))).toEqual(report)
})

it('a body that was cut on the way says nothing of the site, but the status before it does', () => {
  expect(paceReport(answer(200, 'network'))).toEqual({ kind: 'none' })
  expect(paceReport(answer(500, 'network'))).toEqual(BROKEN)
})

it('a wall against robots asks for less, whatever its status', () => {
  expect(paceReport(answer(200), 'cloudflare')).toEqual({ kind: 'overload' })
})
