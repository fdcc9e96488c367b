import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { canInstallPackages, installPackages } from '../../src/embedded/debian-packages.ts'
import { choosePort } from '../../src/embedded/ports.ts'
import { runCommand } from '../../src/embedded/run-command.ts'
import type { Observer } from '../../src/kernel/observe.ts'
import { eventually } from './eventually.ts'

export interface TestRedis {
  readonly url: string
  stop(): Promise<void>
}

/**
 * A Redis for one test run: that of REDIS_URL, else an own server without a disk, else (as root on Debian) the same after installing
 * it. Throws saying what to install.
 */
export async function startTestRedis(observer: Observer): Promise<TestRedis> {
  const given = process.env.REDIS_URL
  if (given !== undefined && given !== '') return { url: given, stop: async () => undefined }
  await ensureRedisServer(observer)
  const folder = mkdtempSync(join(tmpdir(), 'millrace-redis-'))
  const port = await choosePort()
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--maxmemory-policy', 'noeviction']
  const server = spawn('sh', ['-c', UNTIL_STDIN_ENDS, 'redis', ...args, '--dir', folder], { stdio: ['pipe', 'ignore', 'inherit'] })
  const stop = (): Promise<void> => stopRedis(server, folder)
  try {
    await eventually(() => answersPing(port), { what: `redis-server on port ${port}` })
  } catch (error) {
    await stop()
    throw error
  }
  return { url: `redis://127.0.0.1:${port}`, stop }
}

/** The pipe to stdin ends with this process, however that ends: so the server never outlives a test run that was killed. */
const UNTIL_STDIN_ENDS = 'redis-server "$@" & server=$!; cat > /dev/null; kill $server; wait $server'

async function ensureRedisServer(observer: Observer): Promise<void> {
  const found = await runCommand('redis-server', ['--version'], { timeoutMs: 10_000 })
  if (found.kind === 'done') return
  const refused = process.env.MILLRACE_NO_INSTALL === '1'
  if (!refused && canInstallPackages()) {
    const installed = await installPackages(['redis-server'], observer)
    if (installed.kind === 'installed') return
    throw new Error(`the tests need redis-server, and installing it failed: ${installed.reason}`)
  }
  throw new Error(
    'the tests need Redis: set REDIS_URL, or install it (Debian and Ubuntu: apt-get install redis-server; macOS: brew install redis)',
  )
}

async function stopRedis(server: ChildProcess, folder: string): Promise<void> {
  if (server.exitCode === null && server.signalCode === null) {
    const ended = once(server, 'exit')
    server.stdin?.end()
    await ended
  }
  rmSync(folder, { recursive: true, force: true })
}

function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port }, () => socket.write('PING\r\n'))
    const done = (answer: boolean): void => {
      socket.destroy()
      resolve(answer)
    }
    socket.setTimeout(1000, () => done(false))
    socket.once('error', () => done(false))
    socket.once('data', (data: Buffer) => done(data.toString().startsWith('+PONG')))
  })
}
