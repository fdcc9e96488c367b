import { createHash } from 'node:crypto'
import { AwsClient } from 'aws4fetch'
import { retried } from '../kernel/backoff.ts'
import { abortAfter, type Clock } from '../kernel/clock.ts'
import { causesOf, errorText, isMillraceError, MillraceError } from '../kernel/errors.ts'
import { isBodyRef } from '../message/body-ref.ts'
import type { BlobStore, StoredBlob } from './blob-store.ts'
import { parseListing } from './s3-listing.ts'

export interface S3Options {
  readonly bucket: string
  /** What stands before each key: empty, or ends with a slash. */
  readonly prefix: string
  /** Origin of the service; that of AWS for the region where not given. */
  readonly endpoint?: string
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
  readonly clock: Clock
}

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Buffer
}

const TRIES = 3
const RETRY = { firstMs: 200, maxMs: 2_000 } as const
const TIMEOUT_MS = 60_000
/** Characters of it in a message. */
const MAX_LOCATION = 200
const EMPTY_SHA256 = createHash('sha256').update('').digest('hex')

/** Blobs as objects of S3, or of a service that speaks it. Requests are signed here, the bytes included, and repeated by our own rule. */
export class S3BlobStore implements BlobStore {
  readonly location: string
  readonly #options: S3Options
  readonly #signer: AwsClient
  readonly #base: string

  constructor(options: S3Options) {
    const { bucket, prefix, region, accessKeyId, secretAccessKey, sessionToken } = options
    this.#options = options
    // The path names the bucket: a service of one's own rarely has a host name for each.
    this.#base = `${(options.endpoint ?? `https://s3.${region}.amazonaws.com`).replace(/\/+$/, '')}/${encodeURIComponent(bucket)}`
    this.location = `s3://${bucket}/${prefix}`
    this.#signer = new AwsClient({
      accessKeyId,
      secretAccessKey,
      ...(sessionToken === undefined ? {} : { sessionToken }),
      region,
      service: 's3',
      retries: 0,
    })
  }

  async check(): Promise<boolean> {
    await this.#listed('', 1)
    return true
  }

  async prepare(): Promise<void> {
    await this.check()
  }

  async put(ref: string, bytes: Buffer): Promise<void> {
    await this.#repeated(() => this.#once('PUT', this.#url(ref), [200], bytes))
  }

  async get(ref: string, maxBytes: number): Promise<Buffer | undefined> {
    const { status, headers, body } = await this.#repeated(() => this.#once('GET', this.#url(ref), [200, 404], undefined, maxBytes))
    if (status === 404) return undefined
    const announced = Number(headers.get('content-length') ?? body.length)
    if (announced > maxBytes)
      throw new MillraceError('BLOB_BROKEN', `the blob ${ref} has ${announced} bytes; at most ${maxBytes} are read`, { context: { ref } })
    return body
  }

  async *list(): AsyncGenerator<StoredBlob> {
    let token = ''
    do {
      const page = await this.#listed(token, 1_000)
      for (const { key, bytes, touchedAt } of page.objects) {
        const ref = key.slice(this.#options.prefix.length)
        if (isBodyRef(ref)) yield { ref, bytes, touchedAt }
      }
      token = page.next
    } while (token !== '')
  }

  async deleteUntouched(ref: string, before: number): Promise<boolean> {
    // S3 deletes on no condition that a blob written anew would not meet, so a writer may come while the DELETE is on its way, and no
    // sooner.
    return this.#repeated(async () => {
      const { status, headers } = await this.#once('HEAD', this.#url(ref), [200, 404])
      const touchedAt = Date.parse(headers.get('last-modified') ?? '')
      // One whose time is not told is left alone.
      if (status === 404 || Number.isNaN(touchedAt) || touchedAt >= before) return false
      await this.#once('DELETE', this.#url(ref), [200, 204, 404])
      return true
    })
  }

  #url(ref: string): string {
    return `${this.#base}/${`${this.#options.prefix}${ref}`.split('/').map(encodeURIComponent).join('/')}`
  }

  async #listed(token: string, count: number): Promise<ReturnType<typeof parseListing>> {
    const query = new URLSearchParams({ 'list-type': '2', 'max-keys': String(count), prefix: this.#options.prefix })
    if (token !== '') query.set('continuation-token', token)
    const { body } = await this.#repeated(() => this.#once('GET', `${this.#base}?${query}`, [200]))
    return parseListing(body.toString('utf8'))
  }

  /** Again while a repeat may help, a few times. */
  #repeated<T>(work: () => Promise<T>): Promise<T> {
    const again = (error: unknown, tries: number): boolean => isMillraceError(error, 'BLOBS_UNREACHABLE') && tries < TRIES
    return retried(work, { policy: RETRY, again, clock: this.#options.clock })
  }

  /** Shape: one of the statuses given. A body longer than `maxBytes` is left out. */
  async #once(
    method: string,
    url: string,
    expected: readonly number[],
    bytes?: Buffer,
    maxBytes = Number.POSITIVE_INFINITY,
  ): Promise<Answer> {
    const answer = await this.#answered(method, url, bytes, maxBytes)
    if (!expected.includes(answer.status)) throw this.#unexpected(method, url, answer)
    return answer
  }

  async #answered(method: string, url: string, bytes: Buffer | undefined, maxBytes: number): Promise<Answer> {
    // With the sum signed a body that was damaged on its way is refused by the service.
    const sha256 = bytes === undefined ? EMPTY_SHA256 : createHash('sha256').update(bytes).digest('hex')
    const request = await this.#signer.sign(url, {
      method,
      headers: { 'x-amz-content-sha256': sha256 },
      ...(bytes === undefined ? {} : { body: new Uint8Array(bytes) }),
    })
    try {
      // Whoever leads elsewhere has stored nothing, and the other one would see the session token.
      const response = await fetch(request, { redirect: 'manual', signal: abortAfter(TIMEOUT_MS) })
      const isTooLong = Number(response.headers.get('content-length') ?? 0) > maxBytes
      if (isTooLong) await response.body?.cancel()
      const body = isTooLong ? Buffer.alloc(0) : Buffer.from(await response.arrayBuffer())
      return { status: response.status, headers: response.headers, body }
    } catch (error) {
      const reason = errorText([...causesOf(error)].at(-1))
      throw new MillraceError('BLOBS_UNREACHABLE', `the blob store ${this.location} does not answer at ${this.#base}: ${reason}`, {
        cause: error,
      })
    }
  }

  #unexpected(method: string, url: string, { status, headers, body }: Answer): MillraceError {
    const location = headers.get('location') ?? ''
    const leads = status >= 300 && status < 400 && location !== '' ? `, which leads to ${location.slice(0, MAX_LOCATION)}` : ''
    const code = /<Code>([^<]{1,100})<\/Code>/.exec(body.toString('utf8'))?.[1]
    const isPassing = status >= 500 || status === 429 || status === 408
    return new MillraceError(
      isPassing ? 'BLOBS_UNREACHABLE' : 'BLOBS_REFUSED',
      `the blob store ${this.location} answered ${method} ${new URL(url).pathname} with ${status}${code === undefined ? '' : ` ${code}`}${leads}`,
      { context: { status } },
    )
  }
}
