import { get } from 'node:http'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createMetrics, serveMetrics } from '../../../src/control/metrics.ts'
import type { EventDefinition } from '../../../src/kernel/event-definition.ts'
import { EVENTS, type EventName } from '../../../src/kernel/events.ts'
import { GAUGES, type GaugeName, Gauges } from '../../../src/kernel/gauges.ts'
import { createObserver } from '../../../src/kernel/observe.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const EVENT_NAMES = Object.keys(EVENTS) as EventName[]
const metricOf = (event: EventName): EventDefinition['metric'] => (EVENTS[event] as EventDefinition).metric

/** Lines of our metrics, without those of the process. */
const own = (text: string): string[] => text.split('\n').filter((line) => /^millrace_(?!process_|nodejs_)/.test(line))

describe('the names in the catalogue', () => {
  it('are those that Prometheus wants', () => {
    const metrics = EVENT_NAMES.flatMap((event) => metricOf(event) ?? [])
    for (const { name, kind, help, labels, buckets } of metrics) {
      expect(name).toMatch(/^[a-z][a-z0-9_]*$/)
      expect(name.endsWith('_total')).toBe(kind === 'counter')
      if (kind === 'histogram') expect([name.endsWith('_seconds') || name.endsWith('_bytes'), buckets !== undefined]).toEqual([true, true])
      expect(help.length).toBeGreaterThan(10)
      for (const label of labels) expect(label).toMatch(/^[a-z][a-z_]*$/)
    }
    for (const [name, { help, labels }] of Object.entries(GAUGES)) {
      expect(name).toMatch(/^[a-z][a-z0-9_]*(?<!_total|_count|_sum|_bucket)$/)
      expect(help.length).toBeGreaterThan(10)
      for (const label of labels) expect(label).toMatch(/^[a-z][a-z_]*$/)
    }
    const names = [...new Set(metrics.map(({ name }) => name)), ...Object.keys(GAUGES)]
    expect(new Set(names).size).toBe(names.length)
  })

  it('are those that it wants for what the process says of itself too', async () => {
    const types = [...(await createMetrics().render()).matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', kind = '']) => ({
      name,
      kind,
    }))
    expect(types.length).toBeGreaterThan(10)
    expect(types.filter(({ name, kind }) => name.endsWith('_total') !== (kind === 'counter'))).toEqual([])
  })

  it('have no label that a site or a user could choose', () => {
    const metrics = [
      ...EVENT_NAMES.flatMap((event) => metricOf(event) ?? []),
      ...Object.entries(GAUGES).map(([name, { labels }]) => ({ name, labels })),
    ]
    const labels = new Set(metrics.flatMap((metric) => metric.labels))
    for (const label of ['url', 'host', 'key', 'site', 'crawl', 'text', 'error', 'message', 'path', 'taskId'])
      expect(labels.has(label)).toBe(false)
    // Of domains the few that give most pages have a series, where drift is looked for.
    const byDomain = metrics.filter((metric) => (metric.labels as readonly string[]).includes('domain')).map(({ name }) => name)
    expect(byDomain.sort()).toEqual([
      'extract_field_nulls_total',
      'extract_invalid_values_total',
      'extract_pages_total',
      'extract_records_total',
    ])
  })
})

describe('metrics', () => {
  it('are bounded in number and in letters, whatever is made of their labels', async () => {
    const metrics = createMetrics()
    const observer = createObserver({ clock: new ManualClock(), metrics: metrics.sink })
    const field = fc.oneof(fc.string(), fc.webUrl(), fc.integer(), fc.constant(undefined))
    fc.assert(
      fc.property(
        fc.constantFrom(...EVENT_NAMES.filter((event) => metricOf(event) !== undefined)),
        fc.array(field, { minLength: 3, maxLength: 3 }),
        (event, values) => {
          const labels = metricOf(event)?.labels ?? []
          const fields = Object.fromEntries(labels.map((label, index) => [label, values[index]]))
          observer.emit(event, { ...fields, seconds: 1, count: 1, bytes: 1 })
        },
      ),
    )
    for (let count = 0; count < 5_000; count += 1) observer.emit('OutcomeWritten', { kind: 'FAILED', reason: `http-${count}` })
    const lines = own(await metrics.render())
    const outcomes = lines.filter((line) => line.startsWith('millrace_outcomes_total{'))
    expect(outcomes.length).toBeLessThanOrEqual(1_001)
    expect(outcomes.find((line) => line.includes('reason="other"'))).toMatch(/ [1-9]\d*$/)
    for (const line of lines) expect(line).toMatch(/^millrace_[a-z0-9_]+(\{([a-z_]+="[A-Za-z0-9_.:/@+-]*",?)+\})? [0-9.e+-]+$/)
  })

  it('give up the domains of fields before the names of extractors', async () => {
    const metrics = createMetrics()
    const observer = createObserver({ clock: new ManualClock(), metrics: metrics.sink })
    for (let field = 0; field < 100; field += 1)
      for (let site = 0; site < 20; site += 1)
        observer.emit('FieldsNull', { extractor: 'book', version: 1, domain: `site${site}.example`, field: `f${field}`, count: 1 })
    const lines = own(await metrics.render())
    expect(lines.filter((line) => line.includes('domain="site')).length).toBe(800)
    expect(lines).toContain('millrace_extract_field_nulls_total{extractor="book",version="1",domain="other",field="f99"} 20')
    expect(lines.filter((line) => !line.includes('extractor="book"'))).toEqual([])
  })

  it('show what is measured at the moment when they are asked for, and nothing that is measured no more', async () => {
    const gauges = new Gauges()
    const metrics = createMetrics(gauges)
    let waits: Record<string, number> = { rate: 3, 'back-off': 1 }
    const name: GaugeName = 'fetch_sites_waiting'
    const remove = gauges.add(async () => Object.entries(waits).map(([reason, value]) => ({ name, labels: { reason }, value })))
    gauges.add(() => Promise.reject(new Error('a broker that is away')))
    const lines = async (): Promise<string[]> => own(await metrics.render()).sort()
    expect(await lines()).toEqual(['millrace_fetch_sites_waiting{reason="back-off"} 1', 'millrace_fetch_sites_waiting{reason="rate"} 3'])
    waits = { rate: 2 }
    expect(await lines()).toEqual(['millrace_fetch_sites_waiting{reason="rate"} 2'])
    remove()
    expect(await lines()).toEqual([])
  })

  it('are served as text, at one path', async () => {
    const server = await serveMetrics(createMetrics(), 0)
    const status = (path: string): Promise<number | undefined> =>
      new Promise((resolve, reject) =>
        get({ port: server.port, path }, (answer) => resolve(answer.resume().statusCode)).on('error', reject),
      )
    expect([await status('/metrics'), await status('/')]).toEqual([200, 404])
    await server.close()
  })

  it('are served on one address where that is asked for, and on none that is not of this machine', async () => {
    const server = await serveMetrics(createMetrics(), 0, '127.0.0.1')
    const asked = (host: string): Promise<string> =>
      new Promise((resolve) =>
        get({ host, port: server.port, path: '/metrics' }, (answer) => resolve(String(answer.resume().statusCode))).on(
          'error',
          ({ message }) => resolve(message),
        ),
      )
    expect([await asked('127.0.0.1'), await asked('127.0.0.2')]).toEqual(['200', expect.stringContaining('ECONNREFUSED')])
    await server.close()
    await expect(serveMetrics(createMetrics(), 0, '203.0.113.1')).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  })
})
