import type { Config } from '../../config/options.ts'
import { freeDiskBytes, ROOM_TO_START_BYTES } from '../../embedded/disk-space.ts'
import { errorText } from '../../kernel/errors.ts'
import type { Runtime } from '../runtime/runtime.ts'

const EVERY_MS = 5_000

/** Below this much free space fetching pauses on our own broker. */
export function leastFreeBytes(config: Pick<Config, 'fetch.minFreeDisk'>): number {
  return Math.max(config['fetch.minFreeDisk'], ROOM_TO_START_BYTES)
}

/**
 * Holds fetching while the data folder of our own broker has less free space than `fetch.minFreeDisk`, or than the broker itself
 * needs: pages that can't be stored must not be asked for. Goes on by itself. Until the returned function is called.
 */
export async function startDiskGuard(runtime: Runtime, fetch: { holdRequests(isHeld: boolean): void }): Promise<() => void> {
  const { clock, config, dataDir, observer } = runtime
  if (!runtime.isEmbedded) return () => undefined
  let disarm = (): void => undefined
  let isStopped = false
  let isHeld = false
  const look = async (): Promise<void> => {
    try {
      const freeBytes = await freeDiskBytes(dataDir)
      const minFreeBytes = leastFreeBytes(config)
      const isLow = freeBytes < minFreeBytes
      if (isLow) observer.emit('DiskLow', { folder: dataDir, freeBytes, minFreeBytes })
      else if (isHeld) observer.emit('DiskFreed', { folder: dataDir, freeBytes, minFreeBytes })
      // At changes alone: each end of a hold has the paces of sites measured anew.
      if (isLow !== isHeld) fetch.holdRequests(isLow)
      isHeld = isLow
    } catch (error) {
      // A folder that can't be looked at is no reason to stop: writing to it will tell.
      observer.emit('DiskUnknown', { folder: dataDir, error: errorText(error) })
    }
    if (!isStopped) disarm = clock.timer(EVERY_MS, () => void look(), { unref: true })
  }
  await look()
  return () => {
    isStopped = true
    disarm()
  }
}
