import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

/** Lint, format and types, as tests: one command runs all there is, and one line counts it. */
const run = promisify(execFile)
const root = fileURLToPath(new URL('..', import.meta.url))

async function output(program: string, args: readonly string[]): Promise<string> {
  try {
    await run(process.execPath, [`node_modules/${program}`, ...args], { cwd: root, maxBuffer: 64 * 1024 * 1024 })
    return ''
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    return `${stdout}\n${stderr}`.trim() || String(error)
  }
}

describe('the code', () => {
  it('has the types that it says', async () => {
    expect(await output('typescript/bin/tsc', ['--noEmit', '-p', 'test/config/tsconfig.json'])).toBe('')
  }, 120_000)

  it('is linted and formatted', async () => {
    expect(await output('@biomejs/biome/bin/biome', ['check', '--error-on-warnings', '--colors=off'])).toBe('')
  }, 60_000)
})
