import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { inputOf, refuseUnreadable } from '../../../src/cli/input-file.ts'

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-input-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

async function textOf(path: string): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of inputOf(path)) pieces.push(piece)
  return Buffer.concat(pieces).toString()
}

describe('a file of input', () => {
  it('is refused by its option where it is not there, a folder, or may not be read, before anything is started', async () => {
    const path = join(folder, 'folder')
    mkdirSync(path)
    await expect(refuseUnreadable(path, '--seeds')).rejects.toMatchObject({
      code: 'USAGE',
      message: expect.stringMatching(/^--seeds: .*folder$/),
    })
    await expect(refuseUnreadable(join(folder, 'none'), '--file')).rejects.toMatchObject({ code: 'USAGE' })
  })

  it('is read from begin to end', async () => {
    const path = join(folder, 'file')
    writeFileSync(path, 'a\nb\n')
    await refuseUnreadable(path, '--file')
    expect(await textOf(path)).toBe('a\nb\n')
  })
})

describe.skipIf(process.platform !== 'linux')('a named pipe', () => {
  const pipe = (): string => {
    const path = join(folder, 'pipe')
    execFileSync('mkfifo', [path])
    return path
  }

  it('is not opened to see whether it can be read: a writer would find its reader gone', async () => {
    // It would wait for a writer.
    await refuseUnreadable(pipe(), '--file')
  })

  it('is read once from begin to end, though its writer comes later and writes a piece at a time', async () => {
    const path = pipe()
    const reading = textOf(path)
    const writer = spawn('sh', ['-c', `exec > "$0"; for piece in 1 2 3; do echo "http://a.example/$piece"; done`, path])
    expect(await reading).toBe('http://a.example/1\nhttp://a.example/2\nhttp://a.example/3\n')
    expect(writer.exitCode ?? 0).toBe(0)
  })

  it('does not keep a process that ends while no writer has come', async () => {
    const path = pipe()
    const module = JSON.stringify(new URL('../../../src/cli/input-file.ts', import.meta.url).href)
    const script = `import(${module}).then(({ inputOf }) => { inputOf(${JSON.stringify(path)}).next(); setTimeout(() => process.exit(7), 50) })`
    const reader = spawn(process.execPath, ['--import', 'tsx', '-e', script], { stdio: 'ignore', timeout: 120_000, killSignal: 'SIGKILL' })
    expect(await new Promise((resolve) => reader.on('exit', resolve))).toBe(7)
  })
})
