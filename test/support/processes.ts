import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** False when it was gone already. */
export function kill(pid: number | undefined): boolean {
  if (pid === undefined) return false
  try {
    return process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    return false
  }
}

export function isRunning(pid: number | undefined): boolean {
  return processes().some((other) => other.pid === pid)
}

/** Pids of the children of a process whose command line holds a text. Linux only, as the fault runs are. */
export function childrenOf(pid: number | undefined, command: string): number[] {
  return processes()
    .filter((other) => other.parent === pid && other.command.includes(command))
    .map(({ pid: child }) => child)
}

/** Commands of processes that work in this folder. */
export function processesOf(folder: string): string[] {
  return processes()
    .filter(({ command, cwd }) => command.includes(folder) || cwd.startsWith(folder))
    .map(({ pid, command }) => `${pid} ${command}`)
}

function processes(): { pid: number; parent: number; command: string; cwd: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const stat = readOrEmpty(`/proc/${name}/stat`)
      if (stat === '') return []
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      if (fields[0] === 'Z') return []
      return [
        {
          pid: Number(name),
          parent: Number(fields[1]),
          command: readOrEmpty(`/proc/${name}/cmdline`).replaceAll('\0', ' '),
          cwd: cwdOf(name),
        },
      ]
    })
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function cwdOf(pid: string): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`)
  } catch {
    return ''
  }
}
