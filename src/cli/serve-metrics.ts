import type { Config } from '../config/options.ts'
import type { Runtime } from '../control/runtime/runtime.ts'
import type { CommandContext } from './context.ts'

/** `/metrics` for as long as the runtime is open, where `metrics.port` is set. */
export async function serveMetricsOf(context: CommandContext, config: Config, runtime: Runtime): Promise<void> {
  const port = config['metrics.port']
  if (port === undefined) return
  const { createMetrics, serveMetrics } = await import('../control/metrics.ts')
  const metrics = createMetrics(runtime.gauges)
  context.countInto(metrics.sink)
  const server = await serveMetrics(metrics, port, config['metrics.host'])
  runtime.onClose('metrics', () => server.close())
}
