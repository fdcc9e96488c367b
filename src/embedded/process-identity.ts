import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { hostname } from 'node:os'

/**
 * One process, told apart from a later one that got the same pid: pid and start time, and on Linux the boot they belong to.
 *
 * A file that names another host (a folder shared over the network, or another container on the same disk) can't be checked from here;
 * such a process counts as alive, and the message that refuses names the host.
 */
export interface ProcessIdentity {
  readonly pid: number
  /** Start time in the words of the operating system; compared, never shown. */
  readonly start: string
  /** Empty on macOS, whose host name follows the network it is in. */
  readonly host: string
  /** Start time for people, ISO 8601. */
  readonly startedAt: string
}

/** Ticks a second in /proc, the same on every Linux that Node supports. */
const TICKS_PER_SECOND = 100

/** The running process with this pid. Shape: undefined when there is none, or when it has ended and only waits to be collected. */
export function identityOf(pid: number): ProcessIdentity | undefined {
  return process.platform === 'linux' ? linuxIdentity(pid) : psIdentity(pid)
}

export function ownIdentity(): ProcessIdentity {
  const identity = identityOf(process.pid)
  if (identity !== undefined) return identity
  // Neither /proc nor ps answers: the pid alone has to do.
  return { pid: process.pid, start: '', host: localHost(), startedAt: '' }
}

/** False for a process of another host, which can't be asked from here. */
export function isLocal(identity: ProcessIdentity): boolean {
  return identity.host === localHost()
}

/** True while the very process that wrote this identity runs; true as well for one of another host. */
export function isAlive(identity: ProcessIdentity): boolean {
  if (!isLocal(identity)) return true
  if (identity.start === '') return pidExists(identity.pid)
  return pidExists(identity.pid) && identityOf(identity.pid)?.start === identity.start
}

/** For messages: `process 4711, running since 2026-01-31T10:00:00.000Z`. */
export function describeProcess(identity: ProcessIdentity): string {
  const elsewhere = isLocal(identity) ? '' : ` on host ${identity.host}`
  return `process ${identity.pid}${elsewhere}${identity.startedAt === '' ? '' : `, running since ${identity.startedAt}`}`
}

/** An identity read back from a file; undefined when the value is none. */
export function parseIdentity(value: unknown): ProcessIdentity | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { pid, start, host, startedAt } = value as Record<string, unknown>
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 0) return undefined
  if (typeof start !== 'string' || typeof host !== 'string' || typeof startedAt !== 'string') return undefined
  return { pid, start, host, startedAt }
}

/** A process that was started with this argument, word for word; undefined when there is none. Cost: a look at every process. */
export function findProcess(argument: string): ProcessIdentity | undefined {
  const pid = process.platform === 'linux' ? linuxPidOf(argument) : psPidOf(argument)
  return pid === undefined ? undefined : identityOf(pid)
}

function linuxPidOf(argument: string): number | undefined {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  const found = pids.find((pid) => readText(`/proc/${pid}/cmdline`)?.split('\0').includes(argument) === true)
  return found === undefined ? undefined : Number(found)
}

function psPidOf(argument: string): number | undefined {
  const lines = execFileSync('/bin/ps', ['-axww', '-o', 'pid=,command='], { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }).split('\n')
  const found = lines.map((line) => line.trim().split(/\s+/)).find(([, ...words]) => words.includes(argument))
  return found === undefined ? undefined : Number(found[0])
}

function localHost(): string {
  return process.platform === 'darwin' ? '' : hostname()
}

function pidExists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it runs, as another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function linuxIdentity(pid: number): ProcessIdentity | undefined {
  const stat = readText(`/proc/${pid}/stat`)
  if (stat === undefined) return undefined
  // The second field is the command in brackets and may itself hold spaces and brackets, so count from the last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const ticks = fields[19]
  if (ticks === undefined || fields[0] === 'Z' || fields[0] === 'X') return undefined
  const boot = readText('/proc/sys/kernel/random/boot_id')?.trim() ?? ''
  const bootSeconds = Number(/^btime (\d+)$/m.exec(readText('/proc/stat') ?? '')?.[1] ?? Number.NaN)
  const startedMs = bootSeconds * 1000 + (Number(ticks) * 1000) / TICKS_PER_SECOND
  return { pid, start: `${boot}:${ticks}`, host: localHost(), startedAt: isoOrEmpty(startedMs) }
}

function psIdentity(pid: number): ProcessIdentity | undefined {
  let output: string
  try {
    output = execFileSync('/bin/ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      env: { LC_ALL: 'C', TZ: 'UTC' },
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    // ps exits with 1 when there is no such process.
    return undefined
  }
  const [state, ...rest] = output.split(/\s+/)
  if (state === undefined || state.startsWith('Z') || rest.length === 0) return undefined
  const start = rest.join(' ')
  return { pid, start, host: localHost(), startedAt: isoOrEmpty(Date.parse(`${start} UTC`)) }
}

function isoOrEmpty(epochMs: number): string {
  return Number.isFinite(epochMs) ? new Date(epochMs).toISOString() : ''
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // No such process, or no such file on this system: the caller does without.
    return undefined
  }
}
