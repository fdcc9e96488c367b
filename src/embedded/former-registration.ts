import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../kernel/clock.ts'
import { findProcess, signalTo } from '../machine/process-identity.ts'
import { readJsonFile, writeJsonFile } from './atomic-file.ts'
import { fencingMark } from './launch-spec.ts'

/**
 * Takes a broker that has ended out of service, before it starts again.
 *
 * A broker that has ended stays registered, as leader of all partitions, until the controller has missed its heartbeats. One that starts
 * within that time loads its transaction coordinator as if nothing had happened and sends the markers of transactions that were being
 * committed to itself, before it listens. When the controller then fences it, those partitions have no leader for a moment, which the
 * coordinator takes for "deleted": it drops the markers and calls the transaction complete (Kafka 4.4, TransactionMarkerChannelManager).
 * Records and offset of that transaction are lost to readers until the next one of the same producer, and come twice then.
 *
 * The same happens where a broker resigns before it ends (`controlled.shutdown.enable`): it is without leaders some 50 ms before its
 * coordinator stops. So it never does, and ends registered, however it ends.
 *
 * So the controller runs alone for a moment, with a session that is over at once, until it has fenced the broker. That is done when it has
 * ended, where nobody waits, else before its start.
 */
export interface FencingRun {
  readonly command: string
  readonly args: readonly string[]
  /** Which folder it is of (`folderMark`). */
  readonly mark: string
  /** Its logs. */
  readonly data: string
  /** Where it is written down that it is out of service, and up to where the log of its controller went then. */
  readonly note: string
  /** Where the broker runs. */
  readonly cwd: string
  readonly clock: Clock
  /** From the start of Java. */
  readonly limitMs: number
  readonly signal?: AbortSignal
}

/** Before a start: one to two seconds, but twenty where other programs have the machine. Without it records come twice. */
export const FENCE_BEFORE_START_MS = 60_000
/** Someone may wait for the end, and what is not done then is done before the next start. */
export const FENCE_AFTER_END_MS = 10_000
const LOOK_EVERY_MS = 20
/**
 * The controller writes a record every 20 ms though nothing happens (`metadata.max.idle.interval.ms`), and looks for brokers to fence at
 * a quarter of a session of 100 ms: within this many it would have.
 */
const ROUNDS_UNFENCED = 20
/** Records that the controller had ready when it said that it fences come before that in its log; nothing is known to come between. */
const ROUNDS_FENCED = 1
const END_MS = 5_000
/** How long it may take in all. */
export const FENCING_MS = FENCE_BEFORE_START_MS + END_MS

/** Shape: true where the logs are those of a broker that has run since it was last taken out of service. */
export function isRegistered({ data, note }: Pick<FencingRun, 'data' | 'note'>): boolean {
  const log = controllerLog(data)
  if (bytesOf(log) === 0) return false
  const noted = readJsonFile(note)
  return noted.kind !== 'value' || JSON.stringify(noted.value) !== JSON.stringify(log)
}

/** Shape: bytes by name of each file. */
function controllerLog(data: string): Readonly<Record<string, number>> {
  const folder = join(data, '__cluster_metadata-0')
  if (!existsSync(folder)) return {}
  const names = readdirSync(folder).filter((name) => name.endsWith('.log'))
  return Object.fromEntries(names.sort().map((name) => [name, statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0]))
}

function bytesOf(log: Readonly<Record<string, number>>): number {
  return Object.values(log).reduce((sum, bytes) => sum + bytes, 0)
}

/** What came of it, for the log: a broker that could not be fenced is started all the same. Errors: where the note can't be written. */
export async function endFormerRegistration(run: FencingRun): Promise<'fenced' | 'was-fenced' | 'failed'> {
  endLeftOver(run.mark)
  const child = spawn(run.command, [...run.args], { cwd: run.cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.once('error', () => resolve())
  })
  const hasEnded = new AbortController()
  void ended.then(() => hasEnded.abort())
  const over = run.signal === undefined ? hasEnded.signal : AbortSignal.any([run.signal, hasEnded.signal])
  const result = await outcomeOf(child, run, over)
  await endProcess(child, run.clock, ended)
  if (result !== 'failed') writeJsonFile(run.note, controllerLog(run.data))
  return result
}

/**
 * What it says tells what it has begun, and its log what is done: it says that it fences before it writes it, and what it had not written
 * when it was told to end it never does. Its log is written in order, so once that has grown after a word, by more than what was ready
 * before it, what the word was about stands in it.
 */
async function outcomeOf(
  child: ChildProcess,
  { data, clock, limitMs }: FencingRun,
  over: AbortSignal,
): Promise<'fenced' | 'was-fenced' | 'failed'> {
  const heard = listenTo(child)
  const deadlineMono = clock.mono() + limitMs
  let doing = heard()
  let bytes = bytesOf(controllerLog(data))
  let rounds = 0
  while (!over.aborted && clock.mono() < deadlineMono) {
    await clock.sleep(LOOK_EVERY_MS)
    const [doingNow, bytesNow] = [heard(), bytesOf(controllerLog(data))]
    if (doingNow !== doing) rounds = 0
    else if (bytesNow !== bytes) rounds += 1
    doing = doingNow
    bytes = bytesNow
    if (doing === 'fences' && rounds > ROUNDS_FENCED) return 'fenced'
    if (doing === 'is-active' && rounds > ROUNDS_UNFENCED) return 'was-fenced'
  }
  return 'failed'
}

type Doing = 'starts' | 'is-active' | 'fences'

function listenTo(child: ChildProcess): () => Doing {
  let said = ''
  let doing: Doing = 'starts'
  const listen = (bytes: Buffer): void => {
    said = (said + bytes.toString('latin1')).slice(-20_000)
    if (/Fencing broker \d+ at epoch/.test(said)) doing = 'fences'
    else if (doing === 'starts' && /Performing controller activation/.test(said)) doing = 'is-active'
  }
  child.stdout?.on('data', listen)
  child.stderr?.on('data', listen)
  return () => doing
}

/** In order, so that what it has decided is on the disk. */
async function endProcess(child: ChildProcess, clock: Clock, ended: Promise<void>): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  const disarm = clock.timer(END_MS, () => child.kill('SIGKILL'))
  await ended
  disarm()
}

/** Of a supervisor that was killed meanwhile: it holds the lock of the logs. */
function endLeftOver(mark: string): void {
  const left = findProcess(fencingMark(mark))
  if (left !== undefined) signalTo(left, 'SIGKILL')
}
