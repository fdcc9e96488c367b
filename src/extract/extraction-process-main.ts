import { readSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { errorText, isMillraceError } from '../kernel/errors.ts'
import { LanguageBroken } from './code/built-ins.ts'
import { changedText, loadCode, putBackBetweenPages } from './code/code-extractor.ts'
import { type FromProcess, MEMORY_SIGNAL, PAGE_BODY_FD, type ToProcess } from './extraction-protocol.ts'
import { type NativeParse, nativeParser } from './native/native-parser.ts'
import { createPageRunner, type PageJob, type PageRunner, type RunResult } from './page-runner.ts'

/**
 * Entry of an extraction process. It ends when its parent closes the channel, and not by signals meant for the whole group: a page
 * that is in work when the operator presses Ctrl-C is finished.
 */
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => undefined)

// Taken before any extractor is loaded: an extractor must not be able to speak for its process.
const send = process.send?.bind(process)
Reflect.deleteProperty(process, 'send')

// What an extractor left behind (a promise that nobody awaited) is no fault of the page that is in work now.
process.on('unhandledRejection', (reason) => console.error(`left behind by an extractor: ${errorText(reason)}`))
process.on('uncaughtException', (error) => console.error(`left behind by an extractor: ${errorText(error)}`))

/** The parent by its own word: asked from here, it may be another one already. */
const parent = Number(process.argv[2])
process.on('disconnect', () => process.exit())
// Nobody reads any more. To print that would fail as well, and so on for ever.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => process.exit())

// Selectors call back from deep within their library; the extractor's own lines lie below.
Error.stackTraceLimit = 40

let runner: PageRunner | undefined

function answer(message: FromProcess): void {
  send?.(message)
}

/**
 * A thread of its own, so that it goes on while an extractor loops: it ends the process when its parent is gone, and when memory
 * outside the heap, which no flag of Node limits, grows too far.
 */
function watch(maxRssBytes: number): void {
  const text = `
    const { workerData } = require('node:worker_threads')
    const never = new Int32Array(new SharedArrayBuffer(4))
    for (;;) {
      Atomics.wait(never, 0, 0, 200)
      if (process.ppid !== workerData.parent) process.kill(process.pid, 'SIGKILL')
      if (process.memoryUsage.rss() > workerData.maxRssBytes) process.kill(process.pid, workerData.memorySignal)
    }`
  const workerData = { parent, maxRssBytes, memorySignal: MEMORY_SIGNAL }
  new Worker(text, { eval: true, execArgv: [], workerData, resourceLimits: { maxOldGenerationSizeMb: 16 } }).unref()
}

/** Works a page. Each result is told as soon as it is there, but for the last one, which is given back: one message less for a page. */
function runAll(job: PageJob): RunResult | undefined {
  let last: RunResult | undefined
  let count = 0
  const onResult = (result: RunResult): void => {
    count += 1
    if (count === job.extractors.length) last = result
    else answer({ kind: 'result', result })
  }
  runner?.run(job, onResult, (faults) => answer({ kind: 'json-ld', faults }))
  return last
}

/** Waits for all of it: it was written behind the message that told its length, and there is nothing else to do. */
function readBody(length: number): Buffer {
  const body = Buffer.allocUnsafe(length)
  for (let at = 0; at < length; ) {
    const read = readSync(PAGE_BODY_FD, body, at, length - at, null)
    if (read === 0) process.exit()
    at += read
  }
  return body
}

function parseNatively(): NativeParse | undefined {
  const parser = nativeParser()
  return parser.ok ? parser.parse : undefined
}

/** As all that is left behind: no fault of the page that is in work now. */
function tellOfChanges(changed: readonly string[]): void {
  if (changed.length > 0) console.error(`left behind by an extractor: it ${changedText(changed)}`)
}

function obey(message: ToProcess): void {
  switch (message.kind) {
    case 'describe':
      watch(process.memoryUsage.rss() + 512 * 1024 * 1024)
      answer({ kind: 'loading' })
      answer({ kind: 'described', description: loadCode(message.source).description })
      return
    case 'load':
      runner = createPageRunner(message.sources, message.native ? parseNatively() : undefined)
      watch(process.memoryUsage.rss() + message.extraBytes)
      answer({ kind: 'ready', native: runner.isNative })
      return
    case 'run':
      tellOfChanges(putBackBetweenPages())
      answer({ kind: 'begun' })
      answer({ kind: 'done', last: runAll({ ...message.job, page: { ...message.job.page, body: readBody(message.bodyBytes) } }) })
      return
  }
}

process.on('message', (message: ToProcess) => {
  try {
    obey(message)
  } catch (error) {
    if (error instanceof LanguageBroken) {
      // As an extractor's `process.exit`: it costs the page its record and nothing else.
      console.error(`an extractor changed the language: ${error.message}`)
      process.exit(1)
    }
    answer({ kind: 'unusable', message: errorText(error), context: isMillraceError(error) ? error.context : {} })
  }
})
