import { createServer } from 'node:http'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { errorText, MillraceError } from '../kernel/errors.ts'
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
export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry, prefix: PREFIX })
  const known = new Map<string, (labels: Record<string, string>, value: number) => void>()
  return {
    sink: {
      record(metric, labels, value) {
        const write = known.get(metric.name) ?? create(registry, metric)
        known.set(metric.name, write)
        write(labels, value)
      },
    },
    render: () => registry.metrics(),
  }
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

/** `/metrics` on all addresses of the machine. Errors: CONFIG_INVALID when the port is taken. */
export function serveMetrics(metrics: Metrics, port: number): Promise<MetricsServer> {
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
      reject(new MillraceError('CONFIG_INVALID', `metrics.port: can not listen on ${port}: ${errorText(cause)}`, { cause })),
    )
    server.listen(port, () =>
      resolve({
        port,
        close: () =>
          new Promise((done) => {
            server.close(() => done())
            server.closeAllConnections()
          }),
      }),
    )
  })
}
