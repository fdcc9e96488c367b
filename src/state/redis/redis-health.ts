import type { Clock } from '../../kernel/clock.ts'
import { errorText } from '../../kernel/errors.ts'
import type { Observer } from '../../kernel/observe.ts'
import type { StoreHealth } from '../state-store.ts'
import { RedisLink } from './redis-link.ts'
import { parseRedisUrl } from './redis-url.ts'

/** The same of a server that nothing else is asked of. Errors: CONFIG_INVALID, CONFIG_UNREADABLE, REDIS_UNREACHABLE, STATE_UNAVAILABLE. */
export async function redisHealth(url: string, parts: { readonly clock: Clock; readonly observer: Observer }): Promise<StoreHealth> {
  const link = new RedisLink(parseRedisUrl(url), parts)
  await link.open()
  try {
    return await readHealth(link)
  } finally {
    await link.close()
  }
}

/**
 * Facts of the server for `doctor`. Shape: what a managed server, or the user's permissions, do not tell is `unknown`. Errors:
 * STATE_UNAVAILABLE.
 */
export async function readHealth(link: RedisLink): Promise<StoreHealth> {
  const info = await readInfo(link)
  const isAppending = info.get('aof_enabled')
  return {
    kind: 'redis',
    version: info.get('valkey_version') ?? info.get('redis_version') ?? 'unknown',
    location: link.location,
    persistence: isAppending === undefined ? 'unknown' : isAppending === '1' ? 'aof' : await readSnapshots(link),
    maxmemoryPolicy: info.get('maxmemory_policy') ?? 'unknown',
    sizeBytes: Number(info.get('used_memory') ?? 0),
  }
}

/** Shape: empty where the user may not ask: that keeps nobody from working. */
async function readInfo(link: RedisLink): Promise<ReadonlyMap<string, string>> {
  const text = await link.call('health', (redis) =>
    redis.info().catch((error: unknown) => {
      if (/^(NOPERM|ERR unknown command)\b/.test(errorText(error))) return ''
      throw error
    }),
  )
  return parseInfo(text)
}

/** Whether snapshots are written is no part of INFO, and CONFIG is closed on managed servers. */
async function readSnapshots(link: RedisLink): Promise<StoreHealth['persistence']> {
  try {
    const answer = await link.call('health', (redis) => redis.config('GET', 'save'))
    const save = Array.isArray(answer) ? answer[1] : (answer as { save?: unknown } | null)?.save
    return save === '' ? 'none' : typeof save === 'string' ? 'rdb' : 'unknown'
  } catch {
    // Refused: that is an answer too.
    return 'unknown'
  }
}

function parseInfo(text: string): Map<string, string> {
  const pairs = text.split(/\r?\n/).flatMap((line): [string, string][] => {
    const colon = line.indexOf(':')
    return colon <= 0 || line.startsWith('#') ? [] : [[line.slice(0, colon), line.slice(colon + 1)]]
  })
  return new Map(pairs)
}
