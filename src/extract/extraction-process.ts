import { type ChildProcess, fork } from 'node:child_process'
import { createRequire } from 'node:module'
import type { Writable } from 'node:stream'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Clock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import { problemAt } from './code/bundle-map.ts'
import { type FromProcess, MEMORY_SIGNAL, PAGE_BODY_FD, type ToProcess } from './extraction-protocol.ts'
import type { CodeDescription, CodeSource, ExtractorSource } from './extractor-source.ts'
import { invalidExtractor } from './language/extractor-problem.ts'
import type { PageJob, RunResult } from './page-runner.ts'
import type { JsonLdFaults } from './sources/jsonld.ts'

/** Why a process is no more. `outside`: something that is neither the page nor an extractor ended it. */
export type ProcessEnd =
  | { readonly reason: 'timeout' }
  | { readonly reason: 'memory' }
  | { readonly reason: 'crash'; readonly detail: string }
  | { readonly reason: 'outside'; readonly detail: string }

export interface ProcessOptions {
  /** Limit of one extractor on one page. */
  readonly pageTimeoutMs: number
  /** Of the heap; beyond it as much again may lie outside the heap. */
  readonly pageMemoryBytes: number
  readonly clock: Clock
  /** It may use the native parser, if it has one; left out: it may not. */
  readonly native?: boolean
  /** What extractors print. */
  readonly onOutput: (text: string) => void
  /** Ends the process while it starts. */
  readonly signal?: AbortSignal
}

/** What V8 writes when it ends a process for its memory: a page that is too large is told as a dead letter, not as a crash of ours. */
const CRASH_LINE = /^(<---|FATAL ERROR:|-----|\s*\d+: 0x[0-9a-f]+|\[\d+:0x[0-9a-f]+\])/

/** Until a process is up, and has loaded modules that were loaded before, on a machine that is busy. */
const START_TIMEOUT_MS = 60_000
/**
 * Evaluating one module for the first time, once its process is up. A bundle of 5 MB takes less than a second; a machine that is far
 * slower, or busy with as many of them as it has cores, is not refused.
 */
const LOAD_TIMEOUT_MS = 15_000
/** A timer that is later than this was not held up by other work. */
const STOOD_STILL_MS = 1_000
const MIB = 1_048_576
const NO_BYTES = Buffer.alloc(0)
/**
 * Half of the heap's young generation. A page leaves some 5 MiB: with V8's own 16 collecting takes 0.7 ms a page, with this 0.15, since
 * fewer trees are in use when it begins (test/bench/README.md).
 */
const SEMI_SPACE_MIB = 32
/** Room for the young generation, twice and for large objects once more, and for the parts of Node that are no heap. */
const ROOM_BYTES = (80 + 3 * SEMI_SPACE_MIB) * MIB

/**
 * One extraction process: pages in, records out, one page at a time.
 *
 * A process and not a worker thread, because V8 ends the whole process when a single allocation fails in a thread that is near its
 * heap limit: an array or a map that grows for ever, or a page with a million elements in one parent, would take the consumer with
 * it. Dispatch costs the same (0.1 ms for a page of 25 KB).
 */
export class ExtractionProcess {
  readonly #child: ChildProcess
  readonly #bodies: Writable
  readonly #options: ProcessOptions
  readonly #ended: Promise<ProcessEnd>
  #end: ProcessEnd | undefined
  #killedFor: ProcessEnd | undefined
  #lastOutput = ''
  #hasWorked = false
  #isNative = false
  #onMessage: (message: FromProcess) => void = () => undefined
  #onEnd: (end: ProcessEnd) => void = () => undefined

  private constructor(options: ProcessOptions) {
    this.#options = options
    this.#child = forkChild(options)
    this.#ended = new Promise((resolve) => {
      const end = (end: ProcessEnd): void => {
        this.#end ??= this.#killedFor ?? end
        resolve(this.#end)
        this.#onEnd(this.#end)
      }
      this.#child.once('exit', (code, signal) => end(endOf(code, signal, this.#lastOutput)))
      this.#child.once('error', (error) => end({ reason: 'outside', detail: error.message }))
    })
    this.#bodies = this.#child.stdio[PAGE_BODY_FD] as Writable
    // A pipe that nobody reads any more: as with the channel, the end of the process says so.
    this.#bodies.on('error', () => undefined)
    this.#child.on('message', (message) => this.#onMessage(message as FromProcess))
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#lastOutput = `${this.#lastOutput}${text}`.slice(-8_192)
        const shown = withoutCrashReport(text)
        if (shown !== '') options.onOutput(shown)
      })
    }
  }

  /** A process that has loaded its extractors. Errors: EXTRACTOR_INVALID; INTERNAL where it does not come up; the reason of the signal. */
  static async start(sources: readonly ExtractorSource[], options: ProcessOptions): Promise<ExtractionProcess> {
    const started = new ExtractionProcess(options)
    const extraBytes = options.pageMemoryBytes + ROOM_BYTES
    const load: ToProcess = { kind: 'load', sources, extraBytes, native: options.native === true }
    started.#isNative = await started.#first(load, (message) => (message.kind === 'ready' ? message.native : undefined))
    return started
  }

  /** What a code extractor says of itself. It is run for that, so it is run in a process of its own. Errors: as `start`. */
  static async describe(source: CodeSource, options: ProcessOptions): Promise<CodeDescription> {
    const started = new ExtractionProcess(options)
    try {
      return await started.#first({ kind: 'describe', source }, (message) =>
        message.kind === 'described' ? message.description : undefined,
      )
    } finally {
      started.kill()
    }
  }

  get isEnded(): boolean {
    return this.#end !== undefined
  }

  /** The native parser may read its pages; by its own word, since it looks for the package itself. */
  get isNative(): boolean {
    return this.#isNative
  }

  /** It was done with a page: what that has left behind may be what ends it at a later one. */
  get hasWorked(): boolean {
    return this.#hasWorked
  }

  /**
   * Works one page. Shape: undefined when all extractors are done; else why the process ended before that. Never rejects. It waits for
   * the end of the process by a listener that goes with the page: a `then` on a promise that lasts keeps every page's records for ever.
   */
  run(
    job: PageJob,
    onResult: (result: RunResult) => void,
    onJsonLd: (faults: JsonLdFaults) => void = () => undefined,
  ): Promise<ProcessEnd | undefined> {
    const { clock, pageTimeoutMs } = this.#options
    return new Promise((resolve) => {
      let disarm = (): void => undefined
      const arm = (isAgain = false): void => {
        disarm()
        const dueMono = clock.mono() + pageTimeoutMs
        disarm = clock.timer(pageTimeoutMs, () => {
          // Late itself: this process stood still, the machine with it as like as not, or the answer is there and was not read.
          if (!isAgain && clock.mono() - dueMono > STOOD_STILL_MS) arm(true)
          else this.kill({ reason: 'timeout' })
        })
      }
      const finish = (end: ProcessEnd | undefined): void => {
        disarm()
        this.#hasWorked ||= end === undefined
        this.#onMessage = () => undefined
        this.#onEnd = () => undefined
        resolve(end)
      }
      let begun = false
      this.#onMessage = (message) => {
        if (message.kind === 'begun') begun = true
        else if (message.kind === 'result') {
          arm()
          onResult(message.result)
        } else if (message.kind === 'json-ld') onJsonLd(message.faults)
        else if (message.kind === 'done') {
          if (message.last !== undefined) onResult(message.last)
          finish(undefined)
        }
        // A runner that can't even begin is no matter of one page: the next process will tell.
        else this.kill({ reason: 'crash', detail: message.kind === 'unusable' ? message.message : `it answered ${message.kind}` })
      }
      // A process that ends, or is ended, before it has the page was busy with something that came earlier.
      this.#onEnd = (end) => finish(begun ? end : { reason: 'outside', detail: detailOf(end) })
      if (this.#end !== undefined) {
        this.#onEnd(this.#end)
        return
      }
      arm()
      this.#sendPage(job)
    })
  }

  kill(end?: ProcessEnd): void {
    this.#killedFor ??= end
    this.#child.kill('SIGKILL')
  }

  async #first<T>(message: ToProcess, take: (answer: FromProcess) => T | undefined): Promise<T> {
    const { clock, signal } = this.#options
    const within = (ms: number): (() => void) => clock.timer(ms, () => this.kill({ reason: 'timeout' }))
    let disarm = within(START_TIMEOUT_MS)
    const onAbort = (): void => this.kill()
    const answered = new Promise<T>((resolve, reject) => {
      this.#onMessage = (answer) => {
        if (answer.kind === 'loading') {
          disarm()
          disarm = within(LOAD_TIMEOUT_MS)
          return
        }
        const value = take(answer)
        if (value !== undefined) resolve(value)
        else reject(unusable(answer))
      }
    })
    const ended = this.#ended.then((end): never => {
      signal?.throwIfAborted()
      throw startFailure(message, end)
    })
    signal?.addEventListener('abort', onAbort, { once: true })
    if (signal?.aborted) this.kill()
    else this.#send(message)
    try {
      return await Promise.race([answered, ended])
    } catch (error) {
      this.kill()
      throw error
    } finally {
      signal?.removeEventListener('abort', onAbort)
      disarm()
    }
  }

  #sendPage({ page, ...rest }: PageJob): void {
    const { body } = page
    this.#send({ kind: 'run', job: { ...rest, page: { ...page, body: NO_BYTES } }, bodyBytes: body.length })
    this.#bodies.write(body)
  }

  #send(message: ToProcess): void {
    // A channel that is closed already: the end of the process says so to whoever waits.
    this.#child.send(message, () => undefined)
  }
}

/** What ended a process before it had the page. */
function detailOf(end: ProcessEnd): string {
  return 'detail' in end ? end.detail : `it was ended (${end.reason}) for what an earlier page had left behind`
}

function unusable(answer: FromProcess): MillraceError {
  if (answer.kind !== 'unusable') return new MillraceError('INTERNAL', `an extraction process answered ${answer.kind} while it started`)
  return new MillraceError('EXTRACTOR_INVALID', answer.message, { context: answer.context })
}

function startFailure(message: ToProcess, end: ProcessEnd): MillraceError {
  const what = 'detail' in end ? end.detail : end.reason
  if (message.kind !== 'describe') return new MillraceError('INTERNAL', `the extraction process did not come up: ${what}`)
  const why =
    end.reason === 'timeout'
      ? `it was still loading after ${LOAD_TIMEOUT_MS / 1_000} s (does it loop or wait at its top level?)`
      : `it ended its process while it was loaded (${what})`
  const text = `the module can't be loaded: ${why}; an extractor does nothing before it is asked`
  return invalidExtractor(message.source.shown, [problemAt(undefined, text)])
}

function forkChild(options: ProcessOptions): ChildProcess {
  const fromSource = import.meta.url.endsWith('.ts')
  const entry = fileURLToPath(new URL(`./extraction-process-main.${fromSource ? 'ts' : 'js'}`, import.meta.url))
  const tsx = fromSource ? ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href] : []
  return fork(entry, [String(process.pid)], {
    serialization: 'advanced',
    stdio: ['ignore', 'pipe', 'pipe', 'ipc', 'pipe'],
    execArgv: [
      ...tsx,
      `--max-old-space-size=${Math.max(32, Math.ceil(options.pageMemoryBytes / MIB))}`,
      `--max-semi-space-size=${SEMI_SPACE_MIB}`,
    ],
    // No environment, one time zone, one language: the same page gives the same record on every machine.
    env: { TZ: 'UTC', LANG: 'C.UTF-8', LC_ALL: 'C.UTF-8' },
  })
}

const OUT_OF_MEMORY = /out of memory|Allocation failed|invalid (array|table|string|map) (length|size)/i

function endOf(code: number | null, signal: NodeJS.Signals | null, output: string): ProcessEnd {
  if (signal === MEMORY_SIGNAL) return { reason: 'memory' }
  if (signal === 'SIGABRT' || signal === 'SIGTRAP' || signal === 'SIGILL' || code === 134) {
    return OUT_OF_MEMORY.test(output) ? { reason: 'memory' } : { reason: 'crash', detail: `it was aborted (${signal ?? 'exit code 134'})` }
  }
  if (signal === 'SIGSEGV' || signal === 'SIGBUS') return { reason: 'crash', detail: `it ended with ${signal}` }
  if (signal !== null) return { reason: 'outside', detail: `it was ended by ${signal}` }
  return { reason: 'crash', detail: `it ended with exit code ${code}` }
}

/** What an extractor printed, without V8's own last words. */
function withoutCrashReport(text: string): string {
  if (!text.includes('0x') && !text.includes('FATAL ERROR:') && !text.includes('<---')) return text
  const lines = text.split('\n')
  const own = lines.filter((line) => !CRASH_LINE.test(line))
  return own.length === lines.length ? text : own.filter((line) => line.trim() !== '').join('\n')
}
