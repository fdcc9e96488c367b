import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/**
 * One process, told apart from a later one that got the same pid: pid and start time, and on Linux the boot they belong to.
 *
 * A file that names another host (a folder shared over the network, or another container on the same disk) can't be checked from here;
 * such a process counts as alive, and the message that refuses names the host. The same holds for a process that the system hides: only
 * what is known to have ended is gone.
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

/** What the system says of a pid. `hidden`: something has that pid, and this user is not told what. */
export type ProcessLook =
  | { readonly kind: 'running'; readonly start: string; readonly startedMs: number }
  | { readonly kind: 'ended' }
  | { readonly kind: 'hidden' }

/** Asks the system about a pid; given to the functions below by tests alone. */
export type LookAt = (pid: number) => ProcessLook

/** Ticks a second in /proc, the same on every Linux that Node supports. */
const TICKS_PER_SECOND = 100

/** Whether a pid is taken is asked with a signal that is none: unlike /proc, that answers for other users' processes as well. */
export function lookAtProcess(pid: number): ProcessLook {
  if (!pidExists(pid)) return { kind: 'ended' }
  return process.platform === 'linux' ? linuxLook(pid) : psLook(pid)
}

/** Id of this start of the machine. Errors: none; a system that does not tell gives the empty string. */
export function bootId(): string {
  if (process.platform === 'darwin') return commandOutput('/usr/sbin/sysctl', ['-n', 'kern.bootsessionuuid']) ?? ''
  return readText('/proc/sys/kernel/random/boot_id')?.trim() ?? ''
}

/**
 * Name of the set of processes in which a pid is unique: host name, boot and pid namespace, since two containers of one machine both
 * have a process 1. For leases, which end by themselves where nobody can tell; a file in the data folder does not, so it names the
 * host alone, and a container that starts again finds its own.
 */
export function hostIdentity(): string {
  return [hostname(), bootId().slice(0, 8), pidNamespace()].filter((part) => part !== '').join('/')
}

/** This process as an owner of leases. */
export function ownProcess(workerId: string): { workerId: string; host: string; pid: number; pidStartedAt: string } {
  return { workerId, host: hostIdentity(), pid: process.pid, pidStartedAt: processStartedAt(process.pid) ?? '' }
}

/**
 * When the process of that id started, in a form that only equals itself; undefined where there is no such process, or it is hidden.
 * Units: none, it is compared and not calculated with. Cost: one small read on Linux, one child process of some milliseconds elsewhere.
 */
export function processStartedAt(pid: number): string | undefined {
  const found = lookAtProcess(pid)
  return found.kind === 'running' ? found.start : undefined
}

/**
 * True where the owner, known to be of this host, is no longer there: its pid is free or belongs to another process by now. False where
 * the system does not tell: a lease that is kept too long costs a wait, one that is ended too soon asks a site too often.
 */
export function isGone(owner: { readonly pid: number; readonly pidStartedAt: string }, lookAt: LookAt = lookAtProcess): boolean {
  const found = lookAt(owner.pid)
  if (found.kind !== 'running') return found.kind === 'ended'
  // An owner that does not know its start can only be told by its pid.
  return owner.pidStartedAt !== '' && found.start !== owner.pidStartedAt
}

/** The running process with this pid. Shape: undefined when there is none, or when it has ended and only waits to be collected. */
export function identityOf(pid: number): ProcessIdentity | undefined {
  const found = lookAtProcess(pid)
  if (found.kind !== 'running') return undefined
  return { pid, start: withBoot(found.start), host: localHost(), startedAt: isoOrEmpty(found.startedMs) }
}

export function ownIdentity(): ProcessIdentity {
  const identity = identityOf(process.pid)
  if (identity !== undefined) return identity
  // Neither /proc nor ps answers: the pid alone has to do.
  return { pid: process.pid, start: '', host: localHost(), startedAt: '' }
}

/**
 * False for a process of another host, which can't be asked from here. A host may get another name while its processes run: one that
 * is found here, with the start that it names, is of here by whatever name.
 */
export function isLocal(identity: ProcessIdentity, lookAt: LookAt = lookAtProcess): boolean {
  if (identity.host === localHost()) return true
  const found = lookAt(identity.pid)
  return found.kind === 'running' && identity.start === withBoot(found.start)
}

/** True while the very process that wrote this identity runs, or may run: one of another host, or one that the system hides. */
export function isAlive(identity: ProcessIdentity, lookAt: LookAt = lookAtProcess): boolean {
  if (!isLocal(identity, lookAt)) return true
  const found = lookAt(identity.pid)
  if (found.kind !== 'running') return found.kind === 'hidden'
  return identity.start === '' || identity.start === withBoot(found.start)
}

/** Nothing happens when the process has ended in between. */
export function signalTo({ pid }: ProcessIdentity, name: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
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

function pidNamespace(): string {
  if (process.platform !== 'linux') return ''
  try {
    return readlinkSync('/proc/self/ns/pid').replace(/\D/g, '')
  } catch {
    // Hidden by a sandbox: the host name and the boot id have to do.
    return ''
  }
}

function pidExists(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it runs, as another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** On Linux a start is counted from the boot, so it says little without it. */
function withBoot(start: string): string {
  return process.platform === 'linux' ? `${bootId()}:${start}` : start
}

function linuxLook(pid: number): ProcessLook {
  const stat = readText(`/proc/${pid}/stat`)
  if (stat === undefined) return { kind: 'hidden' }
  // The second field is the command in brackets and may itself hold spaces and brackets, so count from the last one.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // A zombie has ended; only its parent has not asked yet. Field 3 is the state, field 22 the start in ticks since boot.
  if (fields[0] === 'Z' || fields[0] === 'X') return { kind: 'ended' }
  const ticks = fields[19]
  if (ticks === undefined) return { kind: 'hidden' }
  const bootSeconds = Number(/^btime (\d+)$/m.exec(readText('/proc/stat') ?? '')?.[1] ?? Number.NaN)
  return { kind: 'running', start: ticks, startedMs: bootSeconds * 1000 + (Number(ticks) * 1000) / TICKS_PER_SECOND }
}

function psLook(pid: number): ProcessLook {
  const output = commandOutput('/bin/ps', ['-o', 'stat=,lstart=', '-p', String(pid)])
  // It had its pid a moment ago: it may have ended since, which the next look tells.
  if (output === undefined) return { kind: 'hidden' }
  const [state = '', ...rest] = output.split(/\s+/)
  if (state.startsWith('Z')) return { kind: 'ended' }
  const start = rest.join(' ')
  return start === '' ? { kind: 'hidden' } : { kind: 'running', start, startedMs: Date.parse(`${start} UTC`) }
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

function commandOutput(command: string, args: readonly string[]): string | undefined {
  const env = { LC_ALL: 'C', TZ: 'UTC' }
  try {
    const text = execFileSync(command, args, { encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'ignore'], timeout: 2_000 }).trim()
    return text === '' ? undefined : text
  } catch {
    // Not on this system, or `ps` knows no such process: the caller does without.
    return undefined
  }
}
