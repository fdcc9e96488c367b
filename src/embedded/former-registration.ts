import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../kernel/clock.ts'
import { findProcess } from '../machine/process-identity.ts'
import { fencingMark } from './launch-spec.ts'

/**
 * Takes a broker that was killed out of service before it starts again.
 *
 * A killed broker stays registered, as leader of all partitions, until the controller has missed its heartbeats. One that starts within
 * that time loads its transaction coordinator as if nothing had happened and sends the markers of transactions that were being committed
 * to itself, before it listens. When the controller then fences it, those partitions have no leader for a moment, which the coordinator
 * takes for "deleted": it drops the markers and calls the transaction complete (Kafka 4.4, TransactionMarkerChannelManager). Records
 * and offset of that transaction are lost to readers until the next one of the same producer, and come twice then.
 *
 * So the controller runs alone for a moment, with a session that is over at once, until it has fenced the broker. Starting takes no longer:
 * the broker would have waited for the end of its former session.
 */
export interface FencingRun {
  readonly command: string
  readonly args: readonly string[]
  /** Which folder it is of (`folderMark`). */
  readonly mark: string
  /** Where the broker runs. */
  readonly cwd: string
  readonly clock: Clock
}

/** From the start of Java; it needs one to two seconds. */
const START_MS = 15_000
/** From when the controller is active: a broker that is in service is fenced within a quarter of a second. */
const FENCE_MS = 1_000
const END_MS = 5_000

/** Shape: true where the logs are those of a broker that ran and was not stopped in order. */
export function wasKilled(data: string): boolean {
  if (existsSync(join(data, '.kafka_cleanshutdown'))) return false
  const metadata = join(data, '__cluster_metadata-0')
  return existsSync(metadata) && readdirSync(metadata).some((name) => name.endsWith('.log') && statSync(join(metadata, name)).size > 0)
}

/** What came of it, for the log: a broker that could not be fenced is started all the same. */
export async function endFormerRegistration(run: FencingRun): Promise<'fenced' | 'was-fenced' | 'failed'> {
  endLeftOver(run.mark)
  const child = spawn(run.command, [...run.args], { cwd: run.cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.once('error', () => resolve())
  })
  const result = await Promise.race([outcomeOf(child, run.clock), ended.then(() => 'failed' as const)])
  await endProcess(child, run.clock, ended)
  return result
}

/** What it says is the only thing that tells; where it says nothing of the sort, time decides. */
function outcomeOf(child: ChildProcess, clock: Clock): Promise<'fenced' | 'was-fenced' | 'failed'> {
  return new Promise((resolve) => {
    let disarm = clock.timer(START_MS, () => resolve('failed'))
    let said = ''
    const listen = (bytes: Buffer): void => {
      said = (said + bytes.toString('latin1')).slice(-20_000)
      if (/Fencing broker \d+ at epoch/.test(said)) {
        disarm()
        resolve('fenced')
      } else if (/Performing controller activation/.test(said)) {
        disarm()
        disarm = clock.timer(FENCE_MS, () => resolve('was-fenced'))
      }
    }
    child.stdout?.on('data', listen)
    child.stderr?.on('data', listen)
  })
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
  if (left === undefined) return
  try {
    process.kill(left.pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
