import type { Config } from '../../config/options.ts'
import { systemClock } from '../../kernel/clock.ts'
import { isMillraceError, type MillraceError } from '../../kernel/errors.ts'
import { readTlsFiles } from '../../machine/tls-files.ts'
import { parseRedisUrl, REDIS_TLS_NAMES } from '../../state/redis/redis-url.ts'
import { loadConfigured } from '../extractors/configured-extractors.ts'
import { groupAdvice } from '../groups/extract-groups.ts'
import { openConfiguredStore } from '../runtime/blob-stores.ts'
import { checkFetchConfig } from '../sites/fetch-config.ts'

export interface ConfigurationFindings {
  /** An error for each part that could not be used, as every process that reads it would end with it. */
  readonly faults: readonly MillraceError[]
  /** What only some processes could not start with. */
  readonly advice: readonly string[]
}

/** Whatever processes read out of the configuration when they start, read beforehand: nothing is started for it, and nobody is asked. */
export async function configurationFindings(config: Config): Promise<ConfigurationFindings> {
  const faults: MillraceError[] = []
  const advice: string[] = []
  const checkExtractors = async (): Promise<void> => {
    const extractors = await loadConfigured(config.extractors)
    // Of other groups the files may be on other machines.
    advice.push(...groupAdvice(config, extractors))
  }
  for (const check of [checkFetchConfig, checkRedis, checkBlobStore, checkExtractors]) {
    try {
      await check(config)
    } catch (error) {
      if (!isMillraceError(error)) throw error
      faults.push(error)
    }
  }
  return { faults, advice }
}

function checkRedis({ redis }: Config): void {
  if (redis !== undefined) readTlsFiles(parseRedisUrl(redis).files, REDIS_TLS_NAMES)
}

function checkBlobStore(config: Config): void {
  openConfiguredStore(config, systemClock)
}
