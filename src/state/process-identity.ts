import { execFileSync } from 'node:child_process'
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import type { LeaseOwner } from './state-store.ts'

/**
 * Who a process is, so that a lease can be told to belong to a process that is gone.
 *
 * A pid alone is not enough twice over: the system gives it again to another process, and two containers of one machine both have a
 * process 1. So a process is (host, pid, start time), and a host is (name, boot, pid namespace).
 */

/** Id of this start of the machine. Errors: none; a system that does not tell gives the empty string. */
export function bootId(): string {
  if (process.platform === 'darwin') return commandOutput('sysctl', ['-n', 'kern.bootsessionuuid']) ?? ''
  return fileText('/proc/sys/kernel/random/boot_id') ?? ''
}

/** Name of the set of processes in which a pid is unique. */
export function hostIdentity(): string {
  const boot = bootId().slice(0, 8)
  return [hostname(), boot, pidNamespace()].filter((part) => part !== '').join('/')
}

/** This process as an owner of leases. */
export function ownProcess(workerId: string): LeaseOwner {
  return { workerId, host: hostIdentity(), pid: process.pid, pidStartedAt: processStartedAt(process.pid) ?? '' }
}

/**
 * When the process of that id started, in a form that only equals itself; undefined where there is no such process. Units: none, it
 * is compared and not calculated with. Cost: one small read on Linux, one child process of some milliseconds elsewhere.
 */
export function processStartedAt(pid: number): string | undefined {
  if (process.platform === 'linux') {
    const stat = fileText(`/proc/${pid}/stat`)
    if (stat === undefined) return undefined
    // The second field is the name in brackets and may hold spaces and brackets itself: count behind the last one.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // A zombie has ended; only its parent has not asked yet. Field 3 is the state, field 22 the start in ticks since boot.
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : fields[19]
  }
  return commandOutput('ps', ['-o', 'lstart=', '-p', String(pid)])
}

/** True where the owner, known to be of this host, is no longer there: its pid is free or belongs to another process by now. */
export function isGone(owner: Pick<LeaseOwner, 'pid' | 'pidStartedAt'>): boolean {
  const startedAt = processStartedAt(owner.pid)
  if (startedAt === undefined) return true
  // An owner that does not know its start can only be told by its pid.
  return owner.pidStartedAt !== '' && startedAt !== owner.pidStartedAt
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

function fileText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    // No such process, or no such system file.
    return undefined
  }
}

function commandOutput(command: string, args: readonly string[]): string | undefined {
  try {
    const text = execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 2_000 }).trim()
    return text === '' ? undefined : text
  } catch {
    // `ps` exits 1 where there is no such process.
    return undefined
  }
}
