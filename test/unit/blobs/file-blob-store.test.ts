import { mkdtempSync, readdirSync, rmSync, utimesSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it, vi } from 'vitest'
import { FileBlobStore } from '../../../src/blobs/file-blob-store.ts'

const meanwhile = vi.hoisted(() => ({ run: async (): Promise<void> => undefined }))
vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof import('node:fs/promises')>()
  const stat = async (path: string) => {
    const found = await real.stat(path)
    await meanwhile.run()
    return found
  }
  return { ...real, stat }
})

const root = mkdtempSync(join(tmpdir(), 'millrace-blobs-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

it('a blob that is written anew after it was found old stays, whole', async () => {
  const store = new FileBlobStore(root)
  const ref = `${'ab'.repeat(32)}.br`
  await store.put(ref, Buffer.from('x'))
  utimesSync(join(root, 'ab', ref), 1_000, 1_000)
  meanwhile.run = async () => {
    meanwhile.run = async () => undefined
    await store.put(ref, Buffer.from('x'))
  }
  expect(await store.deleteUntouched(ref, Date.now() - 60_000)).toBe(false)
  expect(await store.get(ref, 10)).toEqual(Buffer.from('x'))
  expect(readdirSync(join(root, 'ab'))).toEqual([ref])
})
