import { monitorEventLoopDelay } from 'node:perf_hooks'

/** Loaded before the program that is measured: tells, when asked, how late its event loop was. */
const RESOLUTION_MS = 1
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
delay.enable()

process.on('message', (message) => {
  if (message !== 'loop-delay') return
  // A sample is the time between two ticks of the sampling timer.
  const late = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS)
  const { heapUsed, external } = process.memoryUsage()
  process.send({
    p50Ms: late(delay.percentile(50)),
    p99Ms: late(delay.percentile(99)),
    maxMs: late(delay.max),
    heapMiB: heapUsed / 1_048_576,
    externalMiB: external / 1_048_576,
  })
  delay.reset()
})
// The channel alone must not keep the program alive.
process.channel?.unref()
