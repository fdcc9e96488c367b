/**
 * The catalogue of errors: a code exists here and nowhere else, so that code, disposition and exit code cannot disagree. Codes are
 * `AREA_REASON`; one that was released is never renamed or reused.
 */

/**
 * What the caller does with a failure.
 * - `retry`: the same call may succeed later, with back-off.
 * - `dead-letter`: this one message can't be worked; keep its bytes and go on.
 * - `skip`: nothing is lost by passing over it (a stale epoch, a repeat).
 * - `stop`: the service can't go on.
 */
export type Disposition = 'retry' | 'dead-letter' | 'skip' | 'stop'

/**
 * Exit codes of an error: 1 failed, 2 usage or configuration, 4 a dependency is unreachable. 3, done in part, is what a command says of
 * its work.
 */
export type ExitCode = 1 | 2 | 4

interface CatalogueEntry {
  readonly disposition: Disposition
  readonly exitCode: ExitCode
  /** What the operator does next; one sentence. */
  readonly hint: string
}

const entry = (disposition: Disposition, exitCode: ExitCode, hint: string): CatalogueEntry => ({ disposition, exitCode, hint })

export const ERRORS = {
  // usage and configuration
  USAGE: entry('stop', 2, 'See --help of the command.'),
  CONFIG_INVALID: entry('stop', 2, 'Correct the value; `millrace config print` shows each option and where its value came from.'),
  CONFIG_UNKNOWN_KEY: entry('stop', 2, 'Remove or rename the key; `millrace config print` lists all of them.'),
  CONFIG_UNREADABLE: entry('stop', 2, 'Check the path and the permissions of the file.'),
  EXTRACTOR_INVALID: entry('stop', 2, 'Correct the extractor file; `millrace extractors check FILE` points at line and column.'),
  EXTRACTOR_VERSION_CHANGED: entry(
    'stop',
    2,
    'Raise `version` in the extractor file: its output may differ under a version the log already holds.',
  ),
  EXTRACTOR_INCOMPATIBLE: entry('stop', 2, 'Keep the field and its type, or give the extractor a new name.'),
  REPLAY_REFUSED: entry('stop', 2, 'Nothing was changed; the message says which condition was not met.'),
  EXTRACTOR_HELD: entry('stop', 2, 'Correct the extractor, or say --force with a reason that is kept with the request.'),
  CONTROL_UNREADABLE: entry('stop', 2, 'Set `registry.url` as whoever wrote it has it, or use the release that wrote it.'),
  DATA_DIR_LOCKED: entry('stop', 2, 'Stop the process named above, or use another folder with --data.'),
  DATA_DIR_UNUSABLE: entry('stop', 2, 'Correct that, or use another folder with --data.'),
  DATA_DIR_BROKEN: entry('stop', 1, 'Move the folder away and start again; its log is kept in it.'),
  // dependencies
  KAFKA_UNREACHABLE: entry('stop', 4, 'Check `brokers`, the network and that the broker runs; `millrace doctor` tries each address.'),
  KAFKA_DENIED: entry('stop', 4, 'Allow it for this user of the brokers; the README lists what each command needs (Operations).'),
  KAFKA_TOPIC_MISSING: entry('stop', 4, 'Run `millrace topics apply`.'),
  KAFKA_NOT_AVAILABLE: entry('stop', 4, 'Give `brokers`, run `millrace up`, install Java 17 and Maven, or start a Docker engine.'),
  KAFKA_START_FAILED: entry('stop', 4, 'The last lines of the broker log are above; the whole log is in the data folder.'),
  KAFKA_LOST: entry('stop', 4, 'Start the command again; the log of the broker says why it ended.'),
  REDIS_UNREACHABLE: entry('retry', 4, 'Check `redis` and that the server runs.'),
  REDIS_REFUSED: entry('stop', 4, 'Name a Redis in `redis` that is no cluster, and keys that nothing else uses, as the message says.'),
  REGISTRY_UNREACHABLE: entry('retry', 4, 'Check `registry.url` and that the registry runs.'),
  BLOBS_UNREACHABLE: entry('retry', 4, 'Check `blobs.url`, and that the store of large bodies runs.'),
  BLOBS_REFUSED: entry('stop', 4, 'Check `blobs.url`, its credentials and the permissions of the folder or bucket.'),
  STATE_UNAVAILABLE: entry('retry', 4, 'The state store does not answer: fetching pauses until it does.'),
  STATE_BROKEN: entry(
    'stop',
    1,
    'Move the state folder away. What is queued goes on; which URLs were seen is forgotten (they are fetched again where a link leads to them), and page limits, back-offs and paces count anew.',
  ),
  // Kafka
  KAFKA_MESSAGE_TOO_LARGE: entry('dead-letter', 1, 'Raise `topics.maxMessageBytes`, or lower `fetch.maxBodyBytes`.'),
  KAFKA_MESSAGE_REFUSED: entry('dead-letter', 1, 'The broker refuses the message for what it is (its time, its format); see the cause.'),
  KAFKA_FENCED: entry('skip', 1, 'Another process took this partition over.'),
  KAFKA_TRANSACTION_FAILED: entry('retry', 1, 'The transaction is repeated from the committed offset, once it is known.'),
  KAFKA_CONSUMER_CRASHED: entry('stop', 1, 'The consumer could not go on; the process ends so that a supervisor starts it again.'),
  KAFKA_GROUP_ACTIVE: entry('stop', 2, 'Stop the members of the group first.'),
  KAFKA_VERSION: entry('stop', 2, 'Install exactly the version of kafkajs that package.json names: it is patched.'),
  KAFKA_REQUEST_FAILED: entry('retry', 1, 'See the cause.'),
  // messages
  MESSAGE_EMPTY: entry('dead-letter', 1, 'The message has no value.'),
  MESSAGE_FRAMING_UNKNOWN: entry('dead-letter', 1, 'Write Avro single-object encoding, Confluent framing, or JSON on urls topics.'),
  MESSAGE_SCHEMA_UNKNOWN: entry('dead-letter', 1, 'Announce the schema on the control topic, or configure the registry it came from.'),
  MESSAGE_MALFORMED: entry('dead-letter', 1, 'The bytes do not fit the schema they name.'),
  MESSAGE_INVALID: entry('dead-letter', 1, 'The value does not fit the schema; the message names the field.'),
  SCHEMA_INVALID: entry('dead-letter', 2, 'Correct the Avro schema; the message says where.'),
  SCHEMA_INCOMPATIBLE: entry('dead-letter', 1, 'Give every added field a default and every renamed one an alias.'),
  REGISTRY_REFUSED: entry('stop', 4, 'See what the schema registry answered, and check `registry.url` and its credentials.'),
  TASK_FIELD_INVALID: entry('dead-letter', 1, 'Correct the field named in the message.'),
  TASK_URL_INVALID: entry('dead-letter', 1, 'Give an absolute http or https URL.'),
  // extraction
  EXTRACT_FIELD_MISSING: entry('dead-letter', 1, 'The page lacks a required field: correct the selector or make it optional.'),
  EXTRACT_FIELD_INVALID: entry('dead-letter', 1, 'The value does not have the type of the field.'),
  EXTRACT_KEY_MISSING: entry('dead-letter', 1, 'The entity key of the record is empty.'),
  EXTRACT_RECORD_INVALID: entry('dead-letter', 1, 'The record does not fit the schema of the extractor.'),
  EXTRACT_RECORD_TOO_LARGE: entry('dead-letter', 1, 'Let the extractor take less of the page, or give it a topic of its own.'),
  EXTRACT_TIMEOUT: entry('dead-letter', 1, 'Raise `extract.pageTimeout`, or make the extractor cheaper.'),
  EXTRACT_MEMORY: entry('dead-letter', 1, 'Raise `extract.pageMemory`, or make the extractor cheaper.'),
  EXTRACT_FAILED: entry('dead-letter', 1, 'The extractor threw; the message holds its error.'),
  EXTRACT_CRASHED: entry('dead-letter', 1, 'The extractor ended its process.'),
  EXTRACT_PAGE_BROKEN: entry('dead-letter', 1, 'The stored page can not be decoded.'),
  BLOB_MISSING: entry('dead-letter', 1, 'Bring the blob back under its name, or fetch the page again.'),
  BLOB_BROKEN: entry('dead-letter', 1, 'The blob was cut or damaged: replace it by a good copy, or fetch the page again.'),
  BLOB_STORE_UNKNOWN: entry('dead-letter', 1, 'Set `blobs.url` as the fetch workers have it.'),
  // fetching
  FETCH_FAILED: entry('retry', 1, 'See the reason of the outcome.'),
  // everything else
  TIMEOUT: entry('retry', 1, 'It took longer than its limit.'),
  ABORTED: entry('stop', 1, 'The work was stopped.'),
  DISK_FULL: entry('stop', 1, 'Free disk space; nothing was lost.'),
  INTERNAL: entry('stop', 1, 'This is a defect: run again with --verbose and report the stack.'),
} as const satisfies Record<string, CatalogueEntry>

export type ErrorCode = keyof typeof ERRORS

/** Facts that help to find the cause: topic, partition, offset, url, attempt, file, line, column. Never secrets. */
export type ErrorContext = Readonly<Record<string, string | number | bigint | boolean | undefined>>

/** The one error class. Match on `code`; the text is for people: what failed, the value, what was expected, what to do. */
export class MillraceError extends Error {
  override readonly name = 'MillraceError'
  readonly code: ErrorCode
  readonly context: ErrorContext

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; context?: ErrorContext } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.context = options.context ?? {}
  }

  get disposition(): Disposition {
    return ERRORS[this.code].disposition
  }

  get exitCode(): ExitCode {
    return ERRORS[this.code].exitCode
  }

  get hint(): string {
    return ERRORS[this.code].hint
  }
}

/** True for an error of the catalogue, with the code where one is given. */
export function isMillraceError(error: unknown, code?: ErrorCode): error is MillraceError {
  return error instanceof MillraceError && (code === undefined || error.code === code)
}

/** What a call stands on (the brokers, a store, the registry) was away: the same call may succeed later, and who can wait does. */
export function isAway(error: unknown): error is MillraceError {
  return error instanceof MillraceError && (error.disposition === 'retry' || error.code === 'KAFKA_UNREACHABLE')
}

/**
 * Whether a stage ends by it, so that its supervisor starts it again: nobody but an operator can mend it, and every other message would
 * meet the same. What is away comes back. INTERNAL is a defect, which one message may meet and the next may not.
 */
export function endsStage(error: unknown): error is MillraceError {
  return error instanceof MillraceError && error.disposition === 'stop' && error.code !== 'INTERNAL' && !isAway(error)
}

/** The state store does not answer; fetching pauses until it does. */
export function isStateAway(error: unknown): error is MillraceError {
  return isMillraceError(error, 'STATE_UNAVAILABLE') || isMillraceError(error, 'REDIS_UNREACHABLE')
}

/** Whether it is what a stop has made of the work, and not another failure that came beside it. */
export function isStopOf(signal: AbortSignal, error: unknown): boolean {
  return signal.aborted && (error === signal.reason || isMillraceError(error, 'ABORTED'))
}

/** Whoever wraps an error oftener than this tells nothing more by it. */
const MOST_CAUSES = 16

/**
 * One way down from what was thrown to what happened first: the cause of each, or where it has none the first of its errors, as of an
 * aggregate. Total.
 * Shape: what was thrown, then each below it once, 16 in all at most; nothing for null and undefined.
 */
export function* causesOf(error: unknown): Generator<unknown, void, undefined> {
  const seen = new Set<unknown>()
  let current = error
  while (current !== undefined && current !== null && !seen.has(current) && seen.size < MOST_CAUSES) {
    seen.add(current)
    yield current
    const { cause, errors } = current as { readonly cause?: unknown; readonly errors?: unknown }
    current = cause ?? (Array.isArray(errors) ? errors[0] : undefined)
  }
}

/** Text of anything that was thrown; never throws itself. */
export function errorText(error: unknown): string {
  try {
    // Who threw it may have put anything in them.
    const text: unknown = error instanceof Error ? error.message || error.name : error
    return String(text)
  } catch {
    // An object without a prototype, one whose toString throws, or a proxy that does.
    return 'something without a text was thrown'
  }
}
