import { readdirSync, readFileSync } from 'node:fs'

/** Ticks of /proc; 100 on every Linux that Node.js runs on. */
const TICKS_PER_SECOND = 100

/** CPU time of a process with all its threads, its ended children left out; seconds. Linux only. */
export function cpuSeconds(pid: number): number {
  const fields = statFields(pid)
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** A process and all that it has started, their own children included. */
export function processTree(pid: number): number[] {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  )
  return [pid, ...children.flatMap(processTree)]
}

/** Resident memory of a process, MiB. */
export function residentMiB(pid: number): number {
  return memoryMiB(pid, 'VmRSS')
}

/**
 * The part of it that no file stands behind: without the program itself and the pages of mapped files, which are the kernel's cache. MiB.
 */
export function anonymousMiB(pid: number): number {
  return memoryMiB(pid, 'RssAnon')
}

function memoryMiB(pid: number, field: 'VmRSS' | 'RssAnon'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN) / 1024
}

/** Load of the machine over the last minute: what else was running while a figure was taken. */
export function loadAverage(): number {
  return Number(readFileSync('/proc/loadavg', 'utf8').split(' ')[0])
}

/** Fields of /proc/PID/stat behind the name of the command, which may hold blanks. */
function statFields(pid: number): string[] {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
}
