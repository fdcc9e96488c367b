import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { type BrokerFolder, rotateLog } from './broker-folder.ts'

/** Starts the supervisor in a session of its own: Ctrl-C and the end of this process do not reach it. */
export function spawnSupervisor(folder: BrokerFolder): ChildProcess {
  rotateLog(folder.supervisorLog)
  const log = openSync(folder.supervisorLog, 'a')
  try {
    const child = spawn(process.execPath, [...supervisorArgs(), dirname(folder.path)], {
      cwd: folder.path,
      detached: true,
      stdio: ['ignore', log, log],
    })
    child.unref()
    return child
  } finally {
    closeSync(log)
  }
}

/** The built package runs plain JavaScript; the sources (tests, development) run through tsx. */
function supervisorArgs(): string[] {
  if (!import.meta.url.endsWith('.ts')) return [fileURLToPath(new URL('./supervisor-main.js', import.meta.url))]
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href
  return ['--import', tsx, fileURLToPath(new URL('./supervisor-main.ts', import.meta.url))]
}
