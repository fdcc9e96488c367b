import { randomBytes } from 'node:crypto'
import { type FileHandle, open, opendir, readdir, rename, rm, stat, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { errorText, MillraceError } from '../kernel/errors.ts'
import { makeFolderAside } from '../machine/make-folder.ts'
import { isBodyRef } from '../message/body-ref.ts'
import type { BlobStore, StoredBlob } from './blob-store.ts'

const FOLDER = /^[0-9a-f]{2}$/
/** Behind the name of a blob: what a writer that was killed has left of it. */
const TEMPORARY = /\.[0-9a-f]{12}\.tmp$/

/** Blobs as files, in folders by the first two characters of their key. The folder may be shared by several machines. */
export class FileBlobStore implements BlobStore {
  readonly location: string
  readonly #root: string

  constructor(root: string) {
    this.#root = root
    this.location = root
  }

  async check(): Promise<boolean> {
    return this.#doing('read', async () => {
      const folder = await opendir(this.#root).catch(undefinedWhereMissing)
      await folder?.close()
      return folder !== undefined
    })
  }

  async prepare(): Promise<void> {
    const path = join(this.#root, `.check-${randomBytes(6).toString('hex')}`)
    await this.#doing('written to', async () => {
      await makeFolderAside(this.#root)
      await (await open(path, 'wx')).close()
      await unlink(path)
    })
  }

  async put(ref: string, bytes: Buffer): Promise<void> {
    const path = this.#path(ref)
    const temporary = this.#temporary(ref)
    await this.#doing('written to', async () => {
      try {
        const file = await openNew(temporary)
        try {
          await file.writeFile(bytes)
          // The page that names it is acknowledged by Kafka; the blob must not be the weaker of the two.
          await file.datasync()
        } finally {
          await file.close()
        }
        await rename(temporary, path)
      } catch (error) {
        await rm(temporary, { force: true })
        throw error
      }
    })
  }

  async get(ref: string, maxBytes: number): Promise<Buffer | undefined> {
    return this.#doing('read', async () => {
      const file = await open(this.#path(ref), 'r').catch(undefinedWhereMissing)
      if (file === undefined) {
        // Whoever wrote it had a folder: without one this is another place, and says nothing of the blob.
        await (await opendir(this.#root)).close()
        return undefined
      }
      try {
        const found = await file.stat()
        if (!found.isFile()) throw new MillraceError('BLOB_BROKEN', `the blob ${ref} is no file`, { context: { ref } })
        const { size } = found
        if (size > maxBytes)
          throw new MillraceError('BLOB_BROKEN', `the blob ${ref} has ${size} bytes; at most ${maxBytes} are read`, { context: { ref } })
        return await file.readFile()
      } finally {
        await file.close()
      }
    })
  }

  async *list(): AsyncGenerator<StoredBlob> {
    const folders = (await this.#doing('listed', () => readdir(this.#root).catch(undefinedWhereMissing))) ?? []
    for (const folder of folders.filter((name) => FOLDER.test(name))) {
      const names = (await this.#doing('listed', () => readdir(join(this.#root, folder)).catch(undefinedWhereMissing))) ?? []
      for (const ref of names.filter((name) => isBodyRef(name.replace(TEMPORARY, '')))) {
        const found = await this.#doing('listed', () => stat(this.#path(ref)).catch(undefinedWhereMissing))
        if (found?.isFile()) yield { ref, bytes: found.size, touchedAt: found.mtimeMs }
      }
    }
  }

  async deleteUntouched(ref: string, before: number): Promise<boolean> {
    const path = this.#path(ref)
    return this.#doing('cleared', async () => {
      if (!(await isUntouched(path, before))) return false
      // A writer may come between look and deletion: what was taken aside is looked at where no writer reaches it, and put back.
      const aside = this.#temporary(ref)
      await rename(path, aside).catch(undefinedWhereMissing)
      if (await isUntouched(aside, before)) {
        await unlink(aside)
        return true
      }
      await rename(aside, path).catch(undefinedWhereMissing)
      return false
    })
  }

  #path(ref: string): string {
    return join(this.#root, ref.slice(0, 2), ref)
  }

  /** Beside the blob, also of what was left of it, so that it is cleared away itself one day. */
  #temporary(ref: string): string {
    return `${this.#path(ref.replace(TEMPORARY, ''))}.${randomBytes(6).toString('hex')}.tmp`
  }

  async #doing<T>(verb: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw this.#failure(verb, error)
    }
  }

  #failure(verb: string, error: unknown): unknown {
    const code = (error as NodeJS.ErrnoException).code
    if (error instanceof MillraceError || code === undefined) return error
    const context = { folder: this.#root }
    if (code === 'ENOSPC' || code === 'EDQUOT') {
      return new MillraceError('DISK_FULL', `no space is left for the blob store ${this.#root}`, { cause: error, context })
    }
    // A network folder that is away for a moment; everything else is there to be mended by somebody.
    const passing = new Set(['EIO', 'ESTALE', 'ETIMEDOUT', 'EBUSY', 'EMFILE', 'ENFILE', 'EAGAIN'])
    const name = passing.has(code) ? 'BLOBS_UNREACHABLE' : 'BLOBS_REFUSED'
    return new MillraceError(name, `the blob store ${this.#root} can not be ${verb}: ${errorText(error)}`, { cause: error, context })
  }
}

/** The folder is asked for only where it is missing: a network folder has one question less for each blob. */
async function openNew(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  await makeFolderAside(dirname(path))
  return open(path, 'wx')
}

async function isUntouched(path: string, before: number): Promise<boolean> {
  const found = await stat(path).catch(undefinedWhereMissing)
  return found !== undefined && found.mtimeMs < before
}

function undefinedWhereMissing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
}
