import { fileURLToPath } from 'node:url'
import type { Clock } from '../kernel/clock.ts'
import { errorText, MillraceError } from '../kernel/errors.ts'
import { percentDecoded } from '../kernel/percent-decoded.ts'
import type { BlobStore } from './blob-store.ts'
import { FileBlobStore } from './file-blob-store.ts'
import { S3BlobStore } from './s3-blob-store.ts'

export interface BlobStoreSettings {
  /** `file:///folder` or `s3://bucket/prefix`. */
  readonly url: string
  readonly endpoint?: string
  readonly region?: string
  readonly accessKeyId?: string
  readonly secretAccessKey?: string
  readonly sessionToken?: string
}

const DEFAULT_REGION = 'us-east-1'

/** Errors: CONFIG_INVALID naming the option. Nothing is asked of the store yet. */
export function openBlobStore(settings: BlobStoreSettings, clock: Clock): BlobStore {
  const { url: text } = settings
  if (!URL.canParse(text)) throw invalid(`blobs.url is ${JSON.stringify(text)}`)
  const url = new URL(text)
  if (url.protocol === 'file:') {
    if (url.hostname !== '') throw invalid(`blobs.url names the host ${url.hostname}; a folder has three slashes, file:///folder`)
    return new FileBlobStore(folderOf(url))
  }
  if (url.protocol !== 's3:' || url.hostname === '') throw invalid(`blobs.url is ${JSON.stringify(text)}`)
  const { accessKeyId, secretAccessKey, endpoint, region = DEFAULT_REGION, sessionToken } = settings
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    const which =
      accessKeyId === undefined ? 'blobs.accessKeyId (or AWS_ACCESS_KEY_ID)' : 'blobs.secretAccessKey (or AWS_SECRET_ACCESS_KEY)'
    throw new MillraceError('CONFIG_INVALID', `blobs.url is ${text}: ${which} must be set as well`)
  }
  if (endpoint !== undefined && !/^https?:$/.test(URL.canParse(endpoint) ? new URL(endpoint).protocol : '')) {
    throw new MillraceError('CONFIG_INVALID', `blobs.endpoint is ${JSON.stringify(endpoint)}; expected a http or https URL`)
  }
  const bucket = percentDecoded(url.hostname)
  const path = percentDecoded(url.pathname)?.replace(/^\/+|\/+$/g, '')
  if (bucket === undefined || path === undefined)
    throw invalid(`blobs.url is ${JSON.stringify(text)} and holds a % that begins no escape (write %25 for a percent sign)`)
  return new S3BlobStore({
    bucket,
    prefix: path === '' ? '' : `${path}/`,
    ...(endpoint === undefined ? {} : { endpoint }),
    region,
    accessKeyId,
    secretAccessKey,
    ...(sessionToken === undefined ? {} : { sessionToken }),
    clock,
  })
}

function folderOf(url: URL): string {
  try {
    return fileURLToPath(url)
  } catch (cause) {
    throw invalid(`blobs.url is ${JSON.stringify(url.href)}: ${errorText(cause)}`)
  }
}

function invalid(text: string): MillraceError {
  return new MillraceError('CONFIG_INVALID', `${text}; expected file:///folder or s3://bucket/prefix`)
}
