import type { BlobStore } from '../../blobs/blob-store.ts'
import { type BlobStoreSettings, openBlobStore } from '../../blobs/open-blob-store.ts'
import { wholeEnvironment } from '../../config/load.ts'
import type { Config } from '../../config/options.ts'
import type { Clock } from '../../kernel/clock.ts'

/**
 * The blob store of the configuration, asked once whether it can be read. Shape: undefined where `blobs.url` is not set. Errors:
 * CONFIG_INVALID, BLOBS_UNREACHABLE, BLOBS_REFUSED.
 */
export async function blobStoreOf(config: Config, clock: Clock): Promise<BlobStore | undefined> {
  const store = openConfiguredStore(config, clock)
  await store?.check()
  return store
}

/** The same, not asked yet. Errors: CONFIG_INVALID. */
export function openConfiguredStore(config: Config, clock: Clock): BlobStore | undefined {
  const url = config['blobs.url']
  return url === undefined ? undefined : openBlobStore({ url, ...definedOnly(s3Settings(config)) }, clock)
}

/** What is not in the configuration is taken from where every program of S3 takes it. */
function s3Settings(config: Config): Record<keyof Omit<BlobStoreSettings, 'url'>, string | undefined> {
  const environment = wholeEnvironment()
  return {
    endpoint: config['blobs.endpoint'],
    region: config['blobs.region'] ?? environment.AWS_REGION,
    accessKeyId: config['blobs.accessKeyId'] ?? environment.AWS_ACCESS_KEY_ID,
    secretAccessKey: config['blobs.secretAccessKey'] ?? environment.AWS_SECRET_ACCESS_KEY,
    sessionToken: config['blobs.sessionToken'] ?? environment.AWS_SESSION_TOKEN,
  }
}

/** A variable of the environment that is empty counts as not set. */
function definedOnly(settings: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(settings).flatMap(([name, value]) => (value === undefined || value === '' ? [] : [[name, value]])),
  )
}
