import { createHash } from 'node:crypto'
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import type { FetchView, TaskView } from '../../fetch/fetch-view.ts'
import type { Clock } from '../../kernel/clock.ts'
import { errorText } from '../../kernel/errors.ts'
import type { Observer } from '../../kernel/observe.ts'
import { folderMark, isOfFolder } from '../../machine/folder-mark.ts'
import { makeFolder } from '../../machine/make-folder.ts'
import { isAlive, ownIdentity, type ProcessIdentity, parseIdentity } from '../../machine/process-identity.ts'

/**
 * How commands ask processes that run: a Unix socket for each in the data folder, for its user alone. One line of JSON goes in, one
 * comes out, then the connection ends:
 *
 *   {"v":1,"ask":"view"}                          {"v":1,"ok":true,"answer":{...}}
 *   {"v":1,"ask":"find","canonicalUrl":"..."}     {"v":1,"ok":false,"message":"..."}
 *
 * A version or a question that is not known is answered with `ok: false`, so that commands and workers of two releases can meet.
 */
export const SOCKET_VERSION = 1

export type WorkerQuestion = { readonly ask: 'view' } | { readonly ask: 'find'; readonly canonicalUrl: string }

/** What the process can be asked. */
export interface AskedWorker {
  view(): FetchView
  find(canonicalUrl: string): readonly TaskView[]
}

export interface WorkerAnswer<T> {
  readonly pid: number
  readonly stages: readonly string[]
  readonly answer: T
}

/** What lies in the data folder about a process that can be asked. */
interface Entry {
  readonly v: number
  /** In which folder it works (`folderMark`); not of older versions. */
  readonly folder?: unknown
  readonly path: string
  readonly stages: readonly string[]
  readonly process: ProcessIdentity
}

const FOLDER = 'sockets'
/** A path beyond this does not fit the address of a socket on macOS (104 bytes) or Linux (108). */
const MAX_PATH_BYTES = 100
const MAX_LINE_BYTES = 65_536
const MAX_ANSWER_BYTES = 16_777_216
const IDLE_MS = 2_000

/**
 * Listens until the returned function is called. A folder in which no socket can be made is told and is no reason to stop: the worker
 * works, only `explain` and `status` know less.
 */
export async function listenForCommands(options: {
  readonly dataDir: string
  readonly stages: readonly string[]
  readonly worker: AskedWorker
  readonly clock: Clock
  readonly observer: Observer
}): Promise<() => Promise<void>> {
  const { dataDir, stages, worker, clock, observer } = options
  const folder = join(dataDir, FOLDER)
  const note = join(folder, `${process.pid}.json`)
  let path = ''
  let server: Server | undefined
  try {
    path = socketPath(folder)
    makeFolder(folder, 0o700)
    chmodSync(folder, 0o700)
    rmSync(path, { force: true })
    const listening = await listen(path, clock, (question) => answerTo(question, worker))
    server = listening
    chmodSync(path, 0o600)
    const entry: Entry = { v: SOCKET_VERSION, folder: folderMark(folder), path, stages, process: ownIdentity() }
    writeFileSync(note, JSON.stringify(entry), { mode: 0o600 })
    return async () => {
      rmSync(note, { force: true })
      await new Promise<void>((resolve) => listening.close(() => resolve()))
      rmSync(path, { force: true })
    }
  } catch (error) {
    observer.emit('WorkerSocketFailed', { path, error: errorText(error) })
    server?.close()
    return async () => undefined
  }
}

/** Asks every process of this machine that works on the data folder. Those that do not answer in time are left out. */
export async function askWorkers<T>(
  dataDir: string,
  question: WorkerQuestion,
  options: { readonly clock: Clock; readonly timeoutMs?: number },
): Promise<readonly WorkerAnswer<T>[]> {
  const asked = entriesIn(join(dataDir, FOLDER)).map(async ({ path, stages, process: { pid } }) => {
    const line = await ask(path, JSON.stringify({ v: SOCKET_VERSION, ...question }), options)
    const answer = line === undefined ? undefined : readAnswer<T>(line)
    return answer === undefined ? [] : [{ pid, stages, answer }]
  })
  return (await Promise.all(asked)).flat()
}

function socketPath(folder: string): string {
  const beside = join(folder, `${process.pid}.sock`)
  if (Buffer.byteLength(beside) <= MAX_PATH_BYTES) return beside
  const short = join(tmpdir(), `millrace-${userInfo().uid}`)
  mkdirSync(short, { recursive: true, mode: 0o700 })
  const { uid, mode } = lstatSync(short)
  // Anybody may make a folder there, and would then see who asks what.
  if (uid !== userInfo().uid || (mode & 0o077) !== 0) throw new Error(`${short} belongs to somebody else, or is open to others`)
  return join(short, `${createHash('sha256').update(folder).digest('hex').slice(0, 12)}-${process.pid}.sock`)
}

function listen(path: string, clock: Clock, answer: (line: string) => string): Promise<Server> {
  const server = createServer((socket) => serve(socket, clock, answer))
  // It must not keep the process.
  server.unref()
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(path, () => resolve(server))
  })
}

function serve(socket: Socket, clock: Clock, answer: (line: string) => string): void {
  let text = ''
  const disarm = clock.timer(IDLE_MS, () => socket.destroy(), { unref: true })
  socket.setEncoding('utf8')
  socket.on('close', disarm)
  // Whoever asked has gone: nobody is left to be told.
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk: string) => {
    text += chunk
    if (text.length > MAX_LINE_BYTES) socket.destroy()
    const end = text.indexOf('\n')
    if (end !== -1) socket.end(`${answer(text.slice(0, end))}\n`)
  })
}

function answerTo(line: string, worker: AskedWorker): string {
  const reply = (fields: object): string => JSON.stringify({ v: SOCKET_VERSION, ...fields })
  const refused = (message: string): string => reply({ ok: false, message })
  try {
    const question = JSON.parse(line) as { v?: unknown; ask?: unknown; canonicalUrl?: unknown } | null
    if (question?.v !== SOCKET_VERSION) return refused(`this process speaks version ${SOCKET_VERSION}`)
    switch (question.ask) {
      case 'view':
        return reply({ ok: true, answer: worker.view() })
      case 'find':
        return reply({ ok: true, answer: worker.find(String(question.canonicalUrl)) })
      default:
        return refused('this process does not know the question')
    }
  } catch (error) {
    return refused(errorText(error))
  }
}

function readAnswer<T>(line: string): T | undefined {
  try {
    const reply = JSON.parse(line) as { ok?: unknown; answer?: T } | null
    return reply?.ok === true ? reply.answer : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Line of the answer; undefined where there is none in time. */
function ask(path: string, line: string, { clock, timeoutMs = 1_000 }: { clock: Clock; timeoutMs?: number }): Promise<string | undefined> {
  return new Promise((resolve) => {
    let text = ''
    const socket = createConnection(path)
    const finish = (answer: string | undefined): void => {
      disarm()
      socket.destroy()
      resolve(answer)
    }
    const disarm = clock.timer(timeoutMs, () => finish(undefined))
    socket.setEncoding('utf8')
    socket.on('connect', () => socket.write(`${line}\n`))
    socket.on('data', (chunk: string) => {
      text += chunk
      const end = text.indexOf('\n')
      if (end !== -1) finish(text.slice(0, end))
      else if (text.length > MAX_ANSWER_BYTES) finish(undefined)
    })
    socket.on('error', () => finish(undefined))
    socket.on('close', () => finish(undefined))
  })
}

/** Processes that are still there and work in this folder, not in one that it was copied from; what dead ones left is taken away. */
function entriesIn(folder: string): Entry[] {
  const entries: Entry[] = []
  for (const name of namesIn(folder)) {
    if (!name.endsWith('.json')) continue
    const entry = readEntry(join(folder, name))
    if (entry === undefined) continue
    const isHere = isOfFolder(folder, entry.folder)
    if (!isAlive(entry.process)) for (const left of [join(folder, name), ...(isHere ? [entry.path] : [])]) rmSync(left, { force: true })
    else if (isHere) entries.push(entry)
  }
  return entries
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

function readEntry(path: string): Entry | undefined {
  try {
    const entry = JSON.parse(readFileSync(path, 'utf8')) as Partial<Entry> | null
    const owner = parseIdentity(entry?.process)
    if (typeof entry?.path !== 'string' || !Array.isArray(entry.stages) || owner === undefined) return undefined
    return { v: Number(entry.v), folder: entry.folder, path: entry.path, stages: entry.stages.map(String), process: owner }
  } catch {
    // Half written by a process that is just starting, or gone since the folder was read.
    return undefined
  }
}
