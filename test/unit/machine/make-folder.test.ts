import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeFolder } from '../../../src/machine/make-folder.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-folder-'))
})

afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

describe('a folder', () => {
  it('is made with those above it, and left alone where it is there', () => {
    const path = join(folder, 'a', 'b', 'c')
    makeFolder(path, 0o700)
    makeFolder(path)
    expect(statSync(path).isDirectory()).toBe(true)
    expect(statSync(path).mode & 0o777).toBe(0o700)
  })

  it('is refused behind a file', () => {
    writeFileSync(join(folder, 'file'), '')
    expect(() => makeFolder(join(folder, 'file'))).toThrow('EEXIST')
    expect(() => makeFolder(join(folder, 'file', 'a'))).toThrow('ENOTDIR')
  })

  it.runIf(process.platform === 'linux')('is refused at once by a file system that takes none', () => {
    expect(() => makeFolder('/proc/millrace')).toThrow('ENOENT')
    expect(() => makeFolder('/proc/millrace/kafka/leases')).toThrow('ENOENT')
  })
})
