import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { errorText, MillraceError } from '../kernel/errors.ts'
import { GAUGES, type GaugeName, type Gauges } from '../kernel/gauges.ts'
import type { MetricSink } from '../kernel/observe.ts'

export interface MetricsServer {
  readonly port: number
  close(): Promise<void>
}

export interface Metrics {
  /** What the observer writes to. */
  readonly sink: MetricSink
  /** Text in Prometheus's exposition format. */
  render(): Promise<string>
}

const PREFIX = 'millrace_'

/** Metrics of the event catalogue, each made when it is first recorded, in a registry of their own. */
export function createMetrics(gauges: Pick<Gauges, 'read'> = NO_GAUGES): Metrics {
  const registry = new Registry()
  const measured = new Map<GaugeName, Gauge>()
  collectDefaultMetrics({ register: registry, prefix: PREFIX })
  // Sums of what stands beside them by type. `_total` is for counters, and whatever checks names complains of each.
  for (const of of ['handles', 'requests', 'resources']) registry.removeSingleMetric(`${PREFIX}nodejs_active_${of}_total`)
  const bounded = labelBounds()
  const known = new Map<string, (labels: Record<string, string>, value: number) => void>()
  return {
    sink: {
      record(metric, labels, value) {
        const write = known.get(metric.name) ?? create(registry, metric)
        known.set(metric.name, write)
        write(bounded(metric.name, labels), value)
      },
    },
    async render() {
      const readings = await gauges.read()
      for (const gauge of measured.values()) gauge.reset()
      for (const { name, labels, value } of readings) {
        const gauge = measured.get(name) ?? createGauge(registry, name)
        measured.set(name, gauge)
        gauge.set(bounded(name, labels), value)
      }
      return registry.metrics()
    },
  }
}

const NO_GAUGES: Pick<Gauges, 'read'> = { read: async () => [] }

function createGauge(registry: Registry, name: GaugeName): Gauge {
  const { help, labels } = GAUGES[name]
  return new Gauge({ name: `${PREFIX}${name}`, help, labelNames: [...labels], registers: [registry] })
}

/** Series of one metric beyond this are counted together: whatever a defect made a label of, the memory of nobody fills up. */
const MAX_SERIES = 1_000
/** Series of single domains beyond this go to the domain `other`: many fields of many sites must not cost the names of extractors. */
const MAX_DOMAIN_SERIES = 800
const LABEL_VALUE = /^[A-Za-z0-9_.:/@-]{0,120}$/
const OTHER = 'other'

/** Labels are bounded by what the code gives; this makes it sure. Shape: the labels, those without their domain, or all of them `other`. */
function labelBounds(): (metric: string, labels: Readonly<Record<string, string>>) => Record<string, string> {
  const seen = new Map<string, Set<string>>()
  const bounded = (metric: string, labels: Readonly<Record<string, string>>): Record<string, string> => {
    const values = Object.entries(labels)
    const key = values.map(([, value]) => value).join('\n')
    const series = seen.get(metric) ?? new Set()
    seen.set(metric, series)
    if (series.has(key)) return { ...labels }
    const isOfDomain = labels.domain !== undefined && labels.domain !== OTHER
    if (isOfDomain && series.size >= MAX_DOMAIN_SERIES) return bounded(metric, { ...labels, domain: OTHER })
    const fits = series.size < MAX_SERIES && values.every(([, value]) => LABEL_VALUE.test(value))
    if (!fits) return Object.fromEntries(values.map(([name]) => [name, OTHER]))
    series.add(key)
    return { ...labels }
  }
  return bounded
}

function create(registry: Registry, metric: Parameters<MetricSink['record']>[0]): (labels: Record<string, string>, value: number) => void {
  const options = { name: `${PREFIX}${metric.name}`, help: metric.help, labelNames: [...metric.labels], registers: [registry] }
  switch (metric.kind) {
    case 'counter': {
      const counter = new Counter(options)
      return (labels, value) => counter.inc(labels, value)
    }
    case 'gauge': {
      const gauge = new Gauge(options)
      return (labels, value) => gauge.set(labels, value)
    }
    case 'histogram': {
      const histogram = new Histogram({ ...options, ...(metric.buckets === undefined ? {} : { buckets: [...metric.buckets] }) })
      return (labels, value) => histogram.observe(labels, value)
    }
  }
}

/**
 * `/metrics`, on all addresses of the machine where no host is given. Errors: CONFIG_INVALID when the port is taken, or the host is none of
 * its own.
 */
export function serveMetrics(metrics: Metrics, port: number, host?: string): Promise<MetricsServer> {
  const server = createServer((request, response) => {
    if (request.url !== '/metrics') {
      response.writeHead(404).end()
      return
    }
    metrics.render().then(
      (text) => response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }).end(text),
      (error: unknown) => response.writeHead(500).end(errorText(error)),
    )
  })
  return new Promise((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new MillraceError(
          'CONFIG_INVALID',
          `metrics.port: can not listen on ${host === undefined ? '' : `${host}, port `}${port}: ${errorText(cause)}`,
          { cause },
        ),
      ),
    )
    server.listen({ port, host }, () =>
      resolve({
        port: (server.address() as AddressInfo).port,
        close: () =>
          new Promise((done) => {
            server.close(() => done())
            server.closeAllConnections()
          }),
      }),
    )
  })
}
