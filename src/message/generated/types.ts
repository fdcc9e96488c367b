// Written by `npm run generate` from schemas/*.avsc. Do not edit.

/** Priority class of a task; each has a topic of its own. */
export type Lane = 'normal' | 'high' | 'low'

/** How repeats of a URL are told: within the crawl, for the time a claim lives, or not at all. none where crawlId is empty. */
export type Dedup = 'crawl' | 'ttl' | 'none'

/** One URL to fetch. Only url has no default, so that a producer in any language needs one field. */
export interface UrlTask {
  /** What is fetched: as found, serialised as WHATWG URL does, without fragment. */
  readonly url: string
  /** Identity of the URL for deduplication and keys; filled by whoever first decodes the task when empty. */
  readonly canonicalUrl: string
  /** Identity of the task; filled by whoever first decodes it when empty. */
  readonly taskId: string
  /** HTTP method. */
  readonly method: string
  /** Request headers beside Millrace's own; never sent to another origin. */
  readonly headers: Readonly<Record<string, string>>
  /** Body of the request; base64 where the task is written as JSON. */
  readonly body: Buffer | null
  /** Crawl the task belongs to; none: it stands alone and is never a duplicate. */
  readonly crawlId: string | null
  /** Job of the user that asked, passed through. */
  readonly jobId: string | null
  /** Which crawl of this URL it is, from 0. */
  readonly round: number
  /** Topic the task was first read from; set by whoever first decodes it. */
  readonly lane: Lane | null
  /** Links followed from the nearest seed; a seed has 0. */
  readonly depth: number
  /** Links are followed from pages with a smaller depth than this. */
  readonly maxDepth: number
  /** Page that held the link. */
  readonly parentUrl: string | null
  /** Seed that the chain of links began with. */
  readonly seedUrl: string | null
  /** Hops of the redirect chain so far, oldest first. */
  readonly redirects: readonly Hop[]
  /** The request starts no sooner than this. */
  readonly notBefore: number | null
  /** After this the task ends as EXPIRED without a request. */
  readonly expiresAt: number | null
  /** Number of this attempt; the first is 1. */
  readonly attempt: number
  /** Kept for an order among the links of one page; nothing reads it in this version. */
  readonly priority: number
  /** How repeats of this URL are told. */
  readonly dedup: Dedup
  /** Ask with the stored validators; an unchanged page is an outcome, not a message. */
  readonly ifChanged: boolean
  /** Names of the extractors that may read the page; empty: those that match. */
  readonly extractors: readonly string[]
  /** Passed through to page and records untouched. */
  readonly meta: Readonly<Record<string, string>>
  /** W3C trace id, 32 hex characters. */
  readonly traceId: string | null
  /** When the task was produced; filled by whoever first decodes it when empty. */
  readonly enqueuedAt: number | null
  /** 0: a page. 1: a sitemap that robots.txt names; 2 and more: one that a sitemap index names. The URLs in it are followed as links of the page at its depth. */
  readonly sitemapLevel: number
}

/** One answered redirect. */
export interface Hop {
  /** URL that was asked. */
  readonly url: string
  /** HTTP status of the answer, 300 to 399; 200 for a meta refresh. */
  readonly status: number
  /** Target as the server gave it, not yet resolved. */
  readonly location: string
  /** Set-Cookie headers of the answer, as received, within a bound; sent back within the chain. */
  readonly setCookies: readonly string[]
}

/** One response header line, name and value as received. */
export interface Header {
  /** Name as received. */
  readonly name: string
  /** Value as received; bytes above 127 as latin1 characters. */
  readonly value: string
}

/** What robots.txt said of this URL. */
export interface RobotsVerdict {
  /** allowed, ignored (fetch.robots: ignore), or absent (no robots.txt). */
  readonly verdict: string
  /** Line that decided, as written. */
  readonly rule: string | null
}

/** Pace in force for the site when the request started. */
export interface Pace {
  /** Politeness key. */
  readonly key: string
  /** Requests per second. */
  readonly ratePerSecond: number
  /** Requests at the same time. */
  readonly concurrency: number
  /** From the end of a request to the start of the next; ms. */
  readonly crawlDelayMs: number
}

/** One fetched page: the answer as the site gave it, and the task that asked. */
export interface Page {
  /** h(taskId, attempt). */
  readonly fetchId: string
  /** Task that asked. */
  readonly taskId: string
  /** UrlTask.url. */
  readonly url: string
  /** UrlTask.canonicalUrl; also the key. */
  readonly canonicalUrl: string
  /** URL that answered, after redirects. */
  readonly finalUrl: string
  /** Hops, oldest first. */
  readonly redirects: readonly Hop[]
  /** HTTP status. */
  readonly status: number
  /** Response headers in the order received. */
  readonly headers: readonly Header[]
  /** Essence of Content-Type, lower case. */
  readonly contentType: string | null
  /** WHATWG encoding name decided for the text. */
  readonly charset: string | null
  /** bom, header, meta, default or utf8-valid. */
  readonly charsetSource: string | null
  /** Body in the codec that bodyEncoding names; empty where bodyRef is set. */
  readonly body: Buffer
  /** identity, gzip, br, zstd or deflate. */
  readonly bodyEncoding: string
  /** Key of the body in the blob store, where it was too large for the topic. */
  readonly bodyRef: string | null
  /** sha256 of the decoded body, hex. */
  readonly bodySha256: string
  /** Length of the decoded body, bytes. */
  readonly bodyLength: number
  /** Why the body is not whole: size, type, network or encoding; undecoded: nothing could be read by its Content-Encoding, and it is kept as received. */
  readonly truncated: string | null
  /** When the answer was complete; also the timestamp of the message. */
  readonly fetchedAt: number
  /** From the start of the request to the first byte of the answer; ms. */
  readonly ttfbMs: number
  /** All hops together, without waits for the limiter; ms. */
  readonly totalMs: number
  /** Address that answered. */
  readonly remoteAddress: string | null
  /** What robots.txt said. */
  readonly robots: RobotsVerdict | null
  /** Pace in force. */
  readonly policy: Pace | null
  /** Number of the attempt. */
  readonly attempt: number
  /** UrlTask.crawlId. */
  readonly crawlId: string | null
  /** UrlTask.jobId. */
  readonly jobId: string | null
  /** UrlTask.round. */
  readonly round: number
  /** UrlTask.lane. */
  readonly lane: Lane | null
  /** UrlTask.depth. */
  readonly depth: number
  /** UrlTask.maxDepth. */
  readonly maxDepth: number
  /** UrlTask.seedUrl. */
  readonly seedUrl: string | null
  /** UrlTask.parentUrl. */
  readonly parentUrl: string | null
  /** UrlTask.extractors. */
  readonly extractors: readonly string[]
  /** UrlTask.dedup. */
  readonly dedup: Dedup
  /** UrlTask.meta. */
  readonly meta: Readonly<Record<string, string>>
  /** UrlTask.traceId. */
  readonly traceId: string | null
  /** UrlTask.enqueuedAt. */
  readonly enqueuedAt: number | null
  /** UrlTask.sitemapLevel. */
  readonly sitemapLevel: number
}

/** How a task ended; RETRY alone is not final. */
export type OutcomeKind = 'FAILED' | 'FETCHED' | 'UNCHANGED' | 'REDIRECTED' | 'REFUSED' | 'EXPIRED' | 'DUPLICATE' | 'RETRY'

/** How one attempt of a task ended. The first final outcome of a task in its partition counts; later ones are repeats. */
export interface Outcome {
  /** Task that ended. */
  readonly taskId: string
  /** h(taskId, attempt), where a request was made. */
  readonly fetchId: string | null
  /** UrlTask.url. */
  readonly url: string
  /** UrlTask.canonicalUrl; also the key. */
  readonly canonicalUrl: string
  /** How it ended. */
  readonly kind: OutcomeKind
  /** Bounded code: why it was refused, retried or failed. */
  readonly reason: string | null
  /** HTTP status of the last answer. */
  readonly status: number | null
  /** Number of the attempt that ended. */
  readonly attempt: number
  /** When it ended. */
  readonly at: number
  /** From enqueuedAt to the start of the request, or to the end where none was made; ms. */
  readonly queuedMs: number
  /** UrlTask.crawlId. */
  readonly crawlId: string | null
  /** UrlTask.jobId. */
  readonly jobId: string | null
  /** UrlTask.traceId. */
  readonly traceId: string | null
}

/** Sinks keep the highest, compared in this order. */
export interface RecordVersion {
  /** When the page was fetched. */
  readonly fetchedAt: number
  /** Version of the extractor. */
  readonly extractorVersion: number
}

/** Where the HTML that made the record lies. */
export interface Source {
  /** Topic. */
  readonly topic: string
  /** Partition. */
  readonly partition: number
  /** Offset. */
  readonly offset: number
}

/** First fields of every record. The schema of an extractor has these and then data; a reader that needs no data reads any record with this schema. */
export interface RecordEnvelope {
  /** h(fetchId, extractor, version, itemIndex): the key by which a sink collapses repeats. */
  readonly recordId: string
  /** Final URL of the page. */
  readonly url: string
  /** Name of the extractor. */
  readonly extractor: string
  /** Its version. */
  readonly extractorVersion: number
  /** Which record of an entity wins. */
  readonly recordVersion: RecordVersion
  /** Position of the item on the page, from 0. */
  readonly itemIndex: number
  /** Key of the entity within the extractor. */
  readonly entityKey: string
  /** Where the HTML lies. */
  readonly source: Source
  /** sha256 of the decoded body, hex. */
  readonly bodySha256: string
  /** When the page was fetched. */
  readonly fetchedAt: number
  /** When the record was made; also the timestamp of the message. */
  readonly extractedAt: number
  /** UrlTask.crawlId. */
  readonly crawlId: string | null
  /** UrlTask.jobId. */
  readonly jobId: string | null
  /** Replay that made the record; none: live extraction. */
  readonly replayId: string | null
  /** UrlTask.traceId. */
  readonly traceId: string | null
  /** UrlTask.meta. */
  readonly meta: Readonly<Record<string, string>>
}

/** What all workers are to know. The last one of a subject wins. */
export interface Command {
  /** UUIDv7. */
  readonly id: string
  /** set, delete, announce, request or close. */
  readonly kind: string
  /** layout, site:DOMAIN, replay:ID, schema:FINGERPRINT, extractor:NAME:VERSION or crawl:ID; also the key. */
  readonly subject: string
  /** JSON; an empty object where there is nothing to say. */
  readonly payload: string
  /** When it was written. */
  readonly at: number
  /** Who wrote it: command and host. */
  readonly by: string
  /** id of the command this one answers. */
  readonly replyTo: string | null
}
