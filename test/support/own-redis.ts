import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from './eventually.ts'

/** True where there is one that can be started. */
export function findRedisServer(): boolean {
  return spawnSync('redis-server', ['--version']).status === 0
}

/** A Redis of one test, that may be stopped, started and hung: `redis-server` from the PATH on a free port. */
export class OwnRedis {
  readonly port: number
  readonly folder: string
  readonly #settings: readonly string[]
  readonly #isSentinel: boolean
  #process: ChildProcess | undefined

  private constructor(port: number, settings: readonly string[], isSentinel: boolean) {
    this.port = port
    this.#settings = settings
    this.#isSentinel = isSentinel
    this.folder = mkdtempSync(join(tmpdir(), 'millrace-redis-'))
  }

  /** `settings`: lines of redis.conf. */
  static async start(settings: readonly string[] = [], options: { sentinel?: boolean } = {}): Promise<OwnRedis> {
    const redis = new OwnRedis(await freePort(), settings, options.sentinel ?? false)
    await redis.start()
    return redis
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`
  }

  async start(): Promise<void> {
    const file = join(this.folder, 'redis.conf')
    const store = this.#isSentinel ? [] : ['save ""', 'appendonly no']
    writeFileSync(file, [`port ${this.port}`, 'bind 127.0.0.1', `dir ${this.folder}`, ...store, ...this.#settings, ''].join('\n'))
    const child = spawn('redis-server', [file, ...(this.#isSentinel ? ['--sentinel'] : [])], { stdio: 'ignore' })
    this.#process = child
    await once(child, 'spawn')
    await eventually(() => accepts(this.port), { what: `redis-server on port ${this.port}` })
  }

  async stop(): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (child === undefined || child.exitCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }

  /** The process stands still: its connections stay open and say nothing. */
  hang(): void {
    this.#process?.kill('SIGSTOP')
  }

  goOn(): void {
    this.#process?.kill('SIGCONT')
  }

  async end(): Promise<void> {
    await this.stop()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.setTimeout(1_000, () => socket.destroy())
    socket.once('connect', () => socket.write('PING\r\n'))
    // An error reply (NOAUTH) is an answer too; a server that still loads says so and is not ready.
    socket.once('data', (data) => {
      resolve(!data.toString().includes('LOADING'))
      socket.destroy()
    })
    socket.once('error', () => resolve(false))
    socket.once('close', () => resolve(false))
  })
}
