import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { waitForLock } from '../../src/embedded/file-lock.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { testCacheDir } from './embedded.ts'
import { run } from './kafka-tools.ts'

/** What the foreign client of the tests is made of; the folder is made anew when it changes. */
const PACKAGES = ['kafka-python==2.2.15', 'fastavro==1.12.1']

export type Python = { readonly kind: 'python'; readonly command: string } | { readonly kind: 'none'; readonly reason: string }

/**
 * A Python with these packages (a Kafka client and an Avro library where none are named), in the user's cache folder: made once on a
 * machine. Shape: a reason where there is no Python, or pip can't reach its packages.
 */
export async function findPython(packages: readonly string[] = PACKAGES): Promise<Python> {
  const folder = join(testCacheDir(), `python-${packages.join('-').replaceAll(/[^a-z0-9.-]/g, '-')}`)
  const command = join(folder, 'bin', 'python3')
  if (existsSync(join(folder, 'complete'))) return { kind: 'python', command }
  mkdirSync(testCacheDir(), { recursive: true })
  // Test files run beside each other, and more than one of them may be the first to need it.
  const at = { folder: testCacheDir(), name: 'python.lock', what: 'making a Python environment for tests' }
  const lock = await waitForLock({ ...at, waitMs: 600_000, clock: systemClock })
  try {
    return existsSync(join(folder, 'complete')) ? { kind: 'python', command } : await make(folder, command, packages)
  } finally {
    lock.release()
  }
}

async function make(folder: string, command: string, packages: readonly string[]): Promise<Python> {
  // A virtual environment holds its own path, so it can't be made beside its place and moved there.
  rmSync(folder, { recursive: true, force: true })
  try {
    const made = await run('python3', ['-m', 'venv', folder])
    if (made.code !== 0) return { kind: 'none', reason: `python3 -m venv: ${made.stderr.trim().split('\n').at(-1)}` }
    process.stderr.write(`installing what the tests need: ${packages.join(', ')}, by pip, into ${folder}\n`)
    const installed = await run(command, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...packages])
    if (installed.code !== 0) return { kind: 'none', reason: `pip: ${installed.stderr.trim().split('\n').at(-1)}` }
    mkdirSync(join(folder, 'complete.tmp'))
    renameSync(join(folder, 'complete.tmp'), join(folder, 'complete'))
    return { kind: 'python', command }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { kind: 'none', reason: 'there is no python3' }
    throw error
  }
}
