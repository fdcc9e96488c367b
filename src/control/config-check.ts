import type { Config } from '../config/options.ts'
import { systemClock } from '../kernel/clock.ts'
import { isMillraceError, type MillraceError } from '../kernel/errors.ts'
import { readTlsFiles } from '../machine/tls-files.ts'
import { createSchemaStore } from '../message/schema-store.ts'
import { parseRedisUrl, REDIS_TLS_NAMES } from '../state/redis/redis-url.ts'
import { openConfiguredStore } from './blob-stores.ts'
import { envelopeText, loadConfigured, requireGrouped } from './extraction.ts'
import { checkFetchConfig } from './fetch-config.ts'

/**
 * Whatever processes read out of the configuration when they start, read beforehand: nothing is started for it, and nobody is asked. Shape:
 * an error for each part that could not be used, as the process would end with it.
 */
export async function configurationFaults(config: Config): Promise<readonly MillraceError[]> {
  const faults: MillraceError[] = []
  for (const check of [checkFetchConfig, checkRedis, checkBlobStore, checkExtractors]) {
    try {
      await check(config)
    } catch (error) {
      if (!isMillraceError(error)) throw error
      faults.push(error)
    }
  }
  return faults
}

function checkRedis({ redis }: Config): void {
  if (redis !== undefined) readTlsFiles(parseRedisUrl(redis).files, REDIS_TLS_NAMES)
}

function checkBlobStore(config: Config): void {
  openConfiguredStore(config, systemClock)
}

async function checkExtractors(config: Config): Promise<void> {
  requireGrouped(config, await loadConfigured(envelopeText({ schemaStore: createSchemaStore() }), config.extractors))
}
