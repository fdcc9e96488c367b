import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { FileBlobStore } from '../../src/blobs/file-blob-store.ts'
import { blobStoreContract } from './blob-store.contract.ts'

const root = mkdtempSync(join(tmpdir(), 'millrace-blobs-'))
const folder = join(root, 'made', 'by', 'prepare')
const store = new FileBlobStore(folder)
const pathOf = (ref: string): string => join(folder, ref.slice(0, 2), ref)

afterAll(() => rmSync(root, { recursive: true, force: true }))

describe('the blob store in a folder', () => {
  const write = (path: string, bytes: Buffer): void => {
    mkdirSync(join(path, '..'), { recursive: true })
    writeFileSync(path, bytes)
  }
  blobStoreContract(() => ({
    store,
    now: Date.now,
    damage: async (ref, bytes) => write(pathOf(ref), bytes),
    // Where a blob of that name would lie, and where a person would put it.
    putForeign: async (name) => {
      write(pathOf(name.replaceAll('/', '-')), Buffer.from('x'))
      write(join(folder, name), Buffer.from('x'))
    },
  }))

  it('is young again after each write, also where the blob was there', async () => {
    const ref = `${'ab'.repeat(32)}.br`
    await store.put(ref, Buffer.from('x'))
    utimesSync(pathOf(ref), 1_000, 1_000)
    await store.put(ref, Buffer.from('x'))
    expect(await store.deleteUntouched(ref, Date.now() - 60_000)).toBe(false)
  })

  it('clears away what a killed writer has left, and leaves files that are none of its own', async () => {
    // Of its own: what other tests store has names by chance, and may lie in the same folder.
    const own = join(root, 'left-behind')
    const store = new FileBlobStore(own)
    const place = join(own, 'cd')
    mkdirSync(place, { recursive: true })
    const left = `${'cd'.repeat(32)}.gzip.0123456789ab.tmp`
    for (const name of [left, 'notes.txt', `${'cd'.repeat(31)}.gzip`]) writeFileSync(join(place, name), 'x')
    const refs: string[] = []
    for await (const { ref } of store.list()) refs.push(ref)
    expect(refs).toEqual([left])
    expect(await store.deleteUntouched(left, Date.now() + 60_000)).toBe(true)
    expect(readdirSync(place).sort()).toEqual([`${'cd'.repeat(31)}.gzip`, 'notes.txt'])
  })

  it('takes a folder in the place of a blob for a fault of that blob', async () => {
    const ref = `${'0f'.repeat(32)}.br`
    mkdirSync(pathOf(ref), { recursive: true })
    await expect(store.get(ref, 1_000)).rejects.toMatchObject({ code: 'BLOB_BROKEN', message: expect.stringContaining(ref) })
    rmSync(pathOf(ref), { recursive: true })
  })

  it('is made by its writer alone; who reads a page of a store that is not there is in another place', async () => {
    const typo = join(root, 'typo')
    const store = new FileBlobStore(typo)
    const ref = `${'12'.repeat(32)}.br`
    expect(await store.check()).toBe(false)
    await expect(store.get(ref, 1_000)).rejects.toMatchObject({ code: 'BLOBS_REFUSED', message: expect.stringContaining(typo) })
    expect(existsSync(typo)).toBe(false)
    await store.prepare()
    expect([await store.check(), await store.get(ref, 1_000), readdirSync(typo)]).toEqual([true, undefined, []])
  })

  it('says what is wrong with a folder that is none', async () => {
    const file = join(root, 'file')
    writeFileSync(file, '')
    const wrong = new FileBlobStore(file)
    await expect(wrong.prepare()).rejects.toMatchObject({ code: 'BLOBS_REFUSED', message: expect.stringContaining(file) })
    await expect(wrong.check()).rejects.toMatchObject({ code: 'BLOBS_REFUSED', message: expect.stringContaining(file) })
    await expect(wrong.put(`${'ef'.repeat(32)}.br`, Buffer.from('x'))).rejects.toMatchObject({ code: 'BLOBS_REFUSED' })
  })
})
