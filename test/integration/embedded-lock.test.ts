import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { tryLock } from '../../src/embedded/file-lock.ts'
import { eventually } from '../support/eventually.ts'

const children: ChildProcess[] = []
const folders: string[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

function contend(folder: string, times: number): ChildProcess {
  const script = fileURLToPath(new URL('../support/lock-contender.ts', import.meta.url))
  const child = spawn(process.execPath, ['--import', 'tsx', script, folder, String(times)], { stdio: ['ignore', 'ignore', 'inherit'] })
  children.push(child)
  return child
}

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-contend-'))
  folders.push(folder)
  writeFileSync(join(folder, 'counter'), '0')
  return folder
}

describe('the lock between processes', () => {
  it('never lets two in, however many want it', async () => {
    const folder = newFolder()
    const contenders = [1, 2, 3].map(() => contend(folder, 60))
    const codes = await Promise.all(contenders.map(async (child) => (await once(child, 'exit'))[0]))
    expect(codes).toEqual([0, 0, 0])
    expect(readFileSync(join(folder, 'counter'), 'utf8')).toBe('180')
  })

  it('is free as soon as its holder was killed', async () => {
    const folder = newFolder()
    const holder = contend(folder, 1_000_000)
    await eventually(() => Number(readFileSync(join(folder, 'counter'), 'utf8')) > 0, { what: 'the holder to hold it' })
    holder.kill('SIGKILL')
    await once(holder, 'exit')
    expect(tryLock(folder, 'x.lock', 'next').kind).toBe('held')
  })
})
