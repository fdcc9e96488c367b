import { MOST_BODY_BYTES } from '../kernel/body-bounds.ts'
import { LEAST_RATE_PER_SECOND } from '../kernel/pace-bounds.ts'
import type { PolitenessRule } from './politeness-rules.ts'

/**
 * Every option once: path, type, default, description. Parser, types, environment name, README table and `config print` come from
 * here. The environment name is the path in UPPER_SNAKE behind `MILLRACE_`.
 */
export type OptionKind =
  | 'string'
  | 'integer'
  | 'number'
  | 'boolean'
  | 'duration'
  | 'size'
  | 'list'
  | 'map'
  | 'rules'
  | 'groups'
  | readonly string[]

interface ValueOfKind {
  string: string
  integer: number
  number: number
  boolean: boolean
  /** ms */
  duration: number
  /** bytes */
  size: number
  list: readonly string[]
  map: Readonly<Record<string, string>>
  rules: readonly PolitenessRule[]
  groups: Readonly<Record<string, readonly string[]>>
}
type ValueOf<K> = K extends keyof ValueOfKind ? ValueOfKind[K] : K extends readonly (infer Word)[] ? Word : never

export interface OptionDefinition {
  readonly kind: OptionKind
  /** As a person would write it; undefined: the option may be absent. */
  readonly default?: string
  readonly description: string
  /** Short flag beside `--set path=value`. */
  readonly flag?: string
  /** Never printed. `url`: only the password in it is hidden. */
  readonly secret?: true | 'url'
  /** Structured options can't be written in one environment variable. */
  readonly fileOnly?: true
  readonly min?: number
  readonly max?: number
}

/** Of one topic: no broker takes more in earnest. */
const MAX_PARTITIONS = 10_000

/**
 * A broker closes the connection on a request above 100 MiB where `socket.request.max.bytes` is not raised, and the same would be sent for
 * ever.
 */
const MAX_MESSAGE_BYTES = 90 * 1024 ** 2

export const OPTIONS = {
  brokers: {
    kind: 'list',
    default: '',
    flag: '--brokers',
    description: 'Kafka brokers, host:port. None: Millrace runs Apache Kafka itself in the data folder.',
  },
  'kafka.clientId': { kind: 'string', default: 'millrace', description: 'Client id shown to the brokers.' },
  'kafka.sessionTimeout': {
    kind: 'duration',
    min: 6_000,
    description: 'A worker that the broker has not heard of for so long counts as gone; 30s, or 10s on the embedded broker.',
  },
  'kafka.ssl': { kind: 'boolean', default: 'false', description: 'Connect to the brokers by TLS.' },
  'kafka.tls.ca': {
    kind: 'string',
    description: 'File of the CA (PEM) that has signed the certificates of the brokers; the usual CAs where not set.',
  },
  'kafka.tls.cert': { kind: 'string', description: 'File of the certificate (PEM) that brokers are shown, where they ask for one.' },
  'kafka.tls.key': { kind: 'string', description: 'File of its private key (PEM).' },
  'kafka.tls.passphrase': { kind: 'string', secret: true, description: 'Passphrase of that key, where it is encrypted.' },
  'kafka.sasl.mechanism': { kind: ['plain', 'scram-sha-256', 'scram-sha-512'], description: 'SASL mechanism; none where not set.' },
  'kafka.sasl.username': { kind: 'string', description: 'SASL user.' },
  'kafka.sasl.password': {
    kind: 'string',
    secret: true,
    description: 'SASL password; a name in `$` and braces is taken from the environment.',
  },
  redis: {
    kind: 'string',
    flag: '--redis',
    secret: 'url',
    description: 'Redis for state shared by several machines. None: state lives in the data folder, right for one machine.',
  },
  'registry.url': {
    kind: 'string',
    secret: 'url',
    description:
      'Schema registry: messages are written in Confluent framing and read in either. None: schemas come from `schemas/` and from the control topic.',
  },
  'registry.tls.ca': { kind: 'string', description: 'As `kafka.tls.ca`, for the registry.' },
  'registry.tls.cert': { kind: 'string', description: 'As `kafka.tls.cert`, for the registry.' },
  'registry.tls.key': { kind: 'string', description: 'File of its private key (PEM).' },
  'registry.tls.passphrase': { kind: 'string', secret: true, description: 'Passphrase of that key, where it is encrypted.' },
  data: { kind: 'string', default: '.millrace', flag: '--data', description: 'Data folder: embedded Kafka, state, schemas.' },
  'topics.prefix': { kind: 'string', default: 'scrape.', description: 'Prefix of all topics and groups.' },
  'topics.replication': { kind: 'integer', default: '1', min: 1, description: 'Replicas of each topic.' },
  'topics.partitions.urls': {
    kind: 'integer',
    min: 1,
    max: MAX_PARTITIONS,
    description: 'Partitions of each urls topic; 12, or 4 on the embedded broker.',
  },
  'topics.partitions.delay': {
    kind: 'integer',
    min: 1,
    max: MAX_PARTITIONS,
    description: 'Partitions of each delay topic; as urls where not set.',
  },
  'topics.partitions.html': { kind: 'integer', min: 1, max: MAX_PARTITIONS, description: 'Partitions of html; as urls where not set.' },
  'topics.partitions.outcomes': {
    kind: 'integer',
    min: 1,
    max: MAX_PARTITIONS,
    description: 'Partitions of outcomes; as urls where not set.',
  },
  'topics.partitions.records': {
    kind: 'integer',
    min: 1,
    max: MAX_PARTITIONS,
    description: 'Partitions of records; as urls where not set.',
  },
  'topics.partitions.deadLetters': {
    kind: 'integer',
    default: '6',
    min: 1,
    max: MAX_PARTITIONS,
    description: 'Partitions of dead-letters.',
  },
  'topics.maxMessageBytes': {
    kind: 'size',
    default: '10MiB',
    min: 65_536,
    max: MAX_MESSAGE_BYTES,
    description: 'Largest message of html and dead-letters.',
  },
  'topics.retention.html': { kind: 'duration', default: '14d', description: 'How long pages are kept: the replay horizon.' },
  'topics.retention.urls': {
    kind: 'duration',
    default: '7d',
    description: 'How long finished tasks are kept in the lanes at least; open ones are kept for ever.',
  },
  'topics.retention.records': { kind: 'duration', default: '30d', description: 'How long records are kept.' },
  'topics.retention.outcomes': { kind: 'duration', default: '30d', description: 'How long outcomes are kept.' },
  'topics.retention.deadLetters': { kind: 'duration', default: '30d', description: 'How long dead letters are kept.' },
  'topics.recordsCleanup': { kind: ['delete', 'compact,delete'], default: 'delete', description: 'cleanup.policy of records.' },
  'fetch.userAgent': { kind: 'string', description: 'User-Agent with a contact. Without one: millrace/<version>, and a warning.' },
  'fetch.concurrency': { kind: 'integer', default: '200', min: 1, description: 'Requests at the same time, over all sites of a process.' },
  'fetch.robots': { kind: ['obey', 'ignore'], default: 'obey', description: 'What robots.txt counts for.' },
  'fetch.cookies': {
    kind: ['none', 'crawl'],
    default: 'none',
    description: 'Cookies go along within a chain of redirects; with `crawl` from page to page of a crawl too.',
  },
  'fetch.proxies': {
    kind: 'list',
    default: '',
    secret: 'url',
    description: 'Proxies (`http`, `https`, `socks5`, with `user:password@`); sites spread over them. None: directly.',
  },
  'fetch.http2': {
    kind: 'boolean',
    default: 'false',
    description: 'HTTP/2 where a site offers it. A body that a server cuts off is then not always told from a whole one.',
  },
  'fetch.tls.ca': { kind: 'string', description: 'File of certificates (PEM) that are trusted beside the usual ones.' },
  'fetch.resolve': { kind: 'map', default: '', description: 'Addresses of hosts, like curl --resolve; `*.example` covers all below.' },
  'fetch.allowAddresses': { kind: 'list', default: '', description: 'Non-public addresses (CIDR) that may be fetched.' },
  'fetch.timeouts.connect': { kind: 'duration', default: '10s', min: 1, description: 'Until the connection stands, TLS included.' },
  'fetch.timeouts.headers': { kind: 'duration', default: '30s', min: 1, description: 'Until the headers of the answer are there.' },
  'fetch.timeouts.idle': { kind: 'duration', default: '15s', min: 1, description: 'Between two pieces of a body.' },
  'fetch.timeouts.total': { kind: 'duration', default: '120s', min: 1, description: 'For one request as a whole.' },
  'fetch.maxBodyBytes': {
    kind: 'size',
    default: '8MiB',
    min: 1024,
    max: MOST_BODY_BYTES,
    description: 'A decoded body is cut here, and says so; 64MiB at most.',
  },
  'fetch.maxBytesInFlight': {
    kind: 'size',
    default: '64MiB',
    min: 1_048_576,
    description:
      'Bodies held in memory at the same time, over all requests of a process: beyond it none starts, large ones wait, and those that hardly come (under 16 KiB/s) time out. One site has half of it while others have bodies to receive.',
  },
  'fetch.types': {
    kind: 'list',
    default:
      'text/html,application/xhtml+xml,application/xml,text/xml,application/json,application/ld+json,application/rss+xml,application/atom+xml,text/plain',
    description: 'Content types whose body is kept; of others the page is written without its body.',
  },
  'fetch.minFreeDisk': {
    kind: 'size',
    default: '1GiB',
    description:
      'Fetching pauses when the data folder has less free space (embedded broker); below 32 MiB in any case, where the broker rests too.',
  },
  'politeness.key': {
    kind: ['host', 'domain', 'ip'],
    default: 'host',
    description: 'What counts as one site for pacing; `ip`: host and address together.',
  },
  'politeness.default.ratePerSecond': {
    kind: 'number',
    default: '1',
    min: LEAST_RATE_PER_SECOND,
    description: 'Requests per second and site.',
  },
  'politeness.default.burst': { kind: 'integer', default: '1', min: 1, description: 'Requests that may start at once after idling.' },
  'politeness.default.concurrency': { kind: 'integer', default: '1', min: 1, description: 'Requests at the same time per site.' },
  'politeness.default.crawlDelayMax': {
    kind: 'duration',
    default: '30s',
    description: 'A site that asks for a longer crawl delay is parked; the delay is never shortened.',
  },
  'politeness.adaptive': {
    kind: 'boolean',
    default: 'true',
    description: 'Ask less of a site that answers 429 or 503 or gets slow, and more again when it recovers; never above its pace.',
  },
  'politeness.breaker.failures': {
    kind: 'integer',
    default: '5',
    min: 0,
    description: 'A site is parked after this many failed connections or timeouts in a row, or four times as many 5xx; 0: never.',
  },
  'politeness.breaker.firstPark': { kind: 'duration', default: '30s', min: 1, description: 'How long it is parked; doubles each time.' },
  'politeness.breaker.maxPark': {
    kind: 'duration',
    default: '30m',
    min: 1,
    description: 'Longest time between two tries of a parked site.',
  },
  'politeness.breaker.giveUp': {
    kind: 'duration',
    default: '3d',
    min: 0,
    description: 'URLs of a site that has not answered for so long fail, as dead letters to be tried again by hand; 0s: they wait.',
  },
  'politeness.rules': { kind: 'rules', default: '', fileOnly: true, description: 'Paces by host pattern; the first that matches counts.' },
  'retry.maxAttempts': { kind: 'integer', default: '5', min: 1, description: 'Attempts of a task before it fails.' },
  'retry.firstDelay': {
    kind: 'duration',
    default: '10s',
    min: 1,
    description: 'Before the second attempt; doubles with each one. The delay itself is half of that to the whole.',
  },
  'retry.maxDelay': { kind: 'duration', default: '6h', min: 1, description: 'Longest delay between two attempts.' },
  'crawl.maxDepth': {
    kind: 'integer',
    default: '0',
    min: 0,
    flag: '--depth',
    description: 'Links are followed this deep, counted along the path on which a page was found first.',
  },
  'crawl.scope': {
    kind: ['domain', 'host', 'origin', 'any'],
    default: 'domain',
    description: 'Links are followed within this of the seed.',
  },
  'crawl.maxPages': {
    kind: 'integer',
    default: '100000',
    min: 1,
    flag: '--limit',
    description:
      'Pages fetched per crawl, its rounds (`UrlTask.round`) together. URLs that come once it is reached wait while pages are still on their way: one that fails gives its place to the next. `run` leaves them queued where all of these are due later than `--max-wait`.',
  },
  'crawl.maxPagesPerDomain': {
    kind: 'integer',
    default: '10000',
    min: 1,
    description: 'Pages fetched per crawl and registrable domain, rounds together.',
  },
  'crawl.maxLinksPerPage': {
    kind: 'integer',
    default: '10000',
    min: 1,
    description: 'Different links of a page that are looked at; those behind them are counted as `too-many-links`, and said in the log.',
  },
  'crawl.sitemaps': {
    kind: 'boolean',
    default: 'true',
    description:
      'Where links are followed, URLs in the sitemaps that robots.txt of a site names are, too, and those in a sitemap that is given as a URL.',
  },
  'crawl.keepEnded': {
    kind: 'duration',
    default: '30d',
    min: 0,
    description:
      'What a crawl has seen is known for so long after its last URL, six hours and twice `retry.maxDelay` at least; one of the same name then begins anew; 0s: for ever.',
  },
  extractors: {
    kind: 'list',
    default: '',
    fileOnly: true,
    flag: '--extractor',
    description: 'Extractor files; globs with * in the file name, which pass over a millrace.yaml.',
  },
  'extract.groups': { kind: 'groups', default: '', fileOnly: true, description: 'Further extract groups: name to extractor names.' },
  'extract.pageTimeout': { kind: 'duration', default: '10s', min: 10, description: 'Time limit per page and extractor.' },
  'extract.pageMemory': { kind: 'size', default: '256MiB', min: 16_777_216, description: 'Memory limit of an extraction process.' },
  'extract.parser': {
    kind: ['auto', 'parse5', 'native'],
    default: 'auto',
    description: 'HTML parser. `auto`: the native one where domparser-rs is installed, for what it reads alike; `native`: it must be.',
  },
  'extract.threads': { kind: 'integer', default: '1', min: 1, description: 'Extraction processes of a worker.' },
  'blobs.url': {
    kind: 'string',
    description: 'Store of bodies too large for a message: `file:///folder` or `s3://bucket/prefix`. None: such pages fail.',
  },
  'blobs.endpoint': { kind: 'string', description: 'S3 service of your own, such as `http://localhost:8333`; AWS where not set.' },
  'blobs.region': { kind: 'string', description: 'Region of the bucket; AWS_REGION, else us-east-1 where not set.' },
  'blobs.accessKeyId': { kind: 'string', description: 'S3 access key; AWS_ACCESS_KEY_ID where not set.' },
  'blobs.secretAccessKey': { kind: 'string', secret: true, description: 'S3 secret key; AWS_SECRET_ACCESS_KEY where not set.' },
  'blobs.sessionToken': { kind: 'string', secret: true, description: 'S3 session token; AWS_SESSION_TOKEN where not set.' },
  'metrics.domains': {
    kind: 'integer',
    min: 0,
    default: '20',
    description: 'Domains with a label of their own on the metrics of extraction: those that give most pages; the rest is `other`.',
  },
  'metrics.port': {
    kind: 'integer',
    min: 1,
    max: 65_535,
    description: 'Port of /metrics for Prometheus; none where not set.',
  },
  'metrics.host': {
    kind: 'string',
    description:
      'Address on which that port is, such as 127.0.0.1; where not set all of the machine, since Prometheus is usually elsewhere.',
  },
} as const satisfies Record<string, OptionDefinition>

export type OptionPath = keyof typeof OPTIONS

/** The configuration: one value per option path, frozen. An option without a default may be undefined. */
export type Config = {
  readonly [Path in OptionPath]: (typeof OPTIONS)[Path] extends { readonly default: string }
    ? ValueOf<(typeof OPTIONS)[Path]['kind']>
    : ValueOf<(typeof OPTIONS)[Path]['kind']> | undefined
}

/** `fetch.maxBodyBytes` -> `MILLRACE_FETCH_MAX_BODY_BYTES`. */
export function environmentName(path: string): string {
  return `MILLRACE_${path
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .replaceAll('.', '_')
    .toUpperCase()}`
}
