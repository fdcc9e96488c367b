import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** Name for a temporary file beside `path`; the leading dot and the ending keep it out of every listing made here. */
export function temporaryBeside(path: string): string {
  return join(dirname(path), `.${basename(path)}.${process.pid}-${randomBytes(4).toString('hex')}.tmp`)
}

/**
 * Replaces a file as a whole: a reader sees the old text or the new one, also after a crash of the machine. Errors: those of the file
 * system.
 */
export function writeFileAtomic(path: string, content: string | Uint8Array): void {
  const temporary = temporaryBeside(path)
  try {
    const handle = openSync(temporary, 'wx', 0o644)
    try {
      writeSync(handle, typeof content === 'string' ? Buffer.from(content) : content)
      fsyncSync(handle)
    } finally {
      closeSync(handle)
    }
    renameSync(temporary, path)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
}

/** What a small state file holds; `broken` is there and can't be read as JSON. */
export type JsonFile = { readonly kind: 'missing' } | { readonly kind: 'broken' } | { readonly kind: 'value'; readonly value: unknown }

export function readJsonFile(path: string): JsonFile {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'missing' }
    throw error
  }
  try {
    return { kind: 'value', value: JSON.parse(text) as unknown }
  } catch {
    return { kind: 'broken' }
  }
}

export function writeJsonFile(path: string, value: unknown): void {
  writeFileAtomic(path, `${JSON.stringify(value, undefined, 2)}\n`)
}
