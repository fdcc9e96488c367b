import { availableParallelism, loadavg } from 'node:os'

/** On a machine with more to do than it has cores, everything takes as much longer as each process waits for one. Never below 1. */
export const crowding = (): number => Math.max(1, (loadavg()[0] ?? 1) / availableParallelism())
