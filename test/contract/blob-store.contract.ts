import { createHash, randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import type { BlobStore, StoredBlob } from '../../src/blobs/blob-store.ts'

export interface BlobStoreFixture {
  readonly store: BlobStore
  /** Now, by the clock of the store, to a second. */
  readonly now: () => number
  /** Makes a blob what it is after its writer was cut off, or somebody cut it. */
  readonly damage: (ref: string, bytes: Buffer) => Promise<void>
  /** Somebody else's, beside the blobs. */
  readonly putForeign: (name: string) => Promise<void>
}

const MANY = 64 * 1_048_576

/** What every store of bodies must do. */
export function blobStoreContract(fixture: () => BlobStoreFixture): void {
  const newRef = (encoding = 'gzip'): string => `${createHash('sha256').update(randomBytes(16)).digest('hex')}.${encoding}`
  const listed = async (): Promise<StoredBlob[]> => {
    const all: StoredBlob[] = []
    for await (const blob of fixture().store.list()) all.push(blob)
    return all
  }

  it('can be used', async () => {
    await fixture().store.prepare()
    expect(await fixture().store.check()).toBe(true)
  })

  it('gives back the very bytes, of 3 MiB as well', async () => {
    const { store } = fixture()
    const [small, large] = [newRef(), newRef('identity')]
    const bytes = randomBytes(3 * 1_048_576)
    await store.put(small, Buffer.from([0, 255, 10, 13]))
    await store.put(large, bytes)
    expect(await store.get(small, MANY)).toEqual(Buffer.from([0, 255, 10, 13]))
    expect((await store.get(large, MANY))?.equals(bytes)).toBe(true)
  })

  it('has nothing where nothing was written', async () => {
    const { store } = fixture()
    expect(await store.get(newRef(), MANY)).toBeUndefined()
    expect(await store.deleteUntouched(newRef(), fixture().now() + 86_400_000)).toBe(false)
  })

  it('reads no more than it is allowed to', async () => {
    const { store } = fixture()
    const ref = newRef()
    await store.put(ref, Buffer.alloc(2_000))
    await expect(store.get(ref, 1_999)).rejects.toMatchObject({ code: 'BLOB_BROKEN', message: expect.stringContaining('2000 bytes') })
    expect((await store.get(ref, 2_000))?.length).toBe(2_000)
  })

  it('is made whole by whoever writes the same body again', async () => {
    const { store, damage } = fixture()
    const ref = newRef()
    await damage(ref, Buffer.from('cut'))
    expect(await store.get(ref, MANY)).toEqual(Buffer.from('cut'))
    await store.put(ref, Buffer.from('cut off'))
    expect(await store.get(ref, MANY)).toEqual(Buffer.from('cut off'))
  })

  it('lists what it holds, with size and the time of the last write', async () => {
    const { store, now } = fixture()
    const ref = newRef()
    const before = now()
    await store.put(ref, Buffer.alloc(1_234))
    const found = (await listed()).find((blob) => blob.ref === ref)
    expect(found?.bytes).toBe(1_234)
    expect(found?.touchedAt).toBeGreaterThanOrEqual(before - 2_000)
    expect(found?.touchedAt).toBeLessThanOrEqual(now() + 2_000)
  })

  it('lists nothing that is none of its own, so that collecting leaves it alone', async () => {
    const { putForeign } = fixture()
    const [own, short] = [newRef(), `${'0c'.repeat(31)}.gzip`]
    await fixture().store.put(own, Buffer.from('x'))
    for (const name of ['notes.txt', 'backups/monday.tar.gz', `backups/${newRef()}`, short, `${own}.bak`]) await putForeign(name)
    const refs = (await listed()).map(({ ref }) => ref)
    expect(refs).toContain(own)
    expect(refs.filter((ref) => !/^[0-9a-f]{64}\.[a-z]+$/.test(ref))).toEqual([])
  })

  it('deletes what was not written since, and nothing that was', async () => {
    const { store, now } = fixture()
    const ref = newRef()
    await store.put(ref, Buffer.from('x'))
    expect(await store.deleteUntouched(ref, now() - 60_000)).toBe(false)
    expect(await store.get(ref, MANY)).toEqual(Buffer.from('x'))
    expect(await store.deleteUntouched(ref, now() + 60_000)).toBe(true)
    expect(await store.get(ref, MANY)).toBeUndefined()
    expect((await listed()).some((blob) => blob.ref === ref)).toBe(false)
  })
}
