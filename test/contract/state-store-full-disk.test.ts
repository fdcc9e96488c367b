import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { StoreBench } from '../support/state-stores.ts'

const disk = mkdtempSync(join(tmpdir(), 'millrace-state-disk-'))
const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=32m', 'tmpfs', disk], { encoding: 'utf8' })
const reason = mounted.status === 0 ? '' : ` (skipped: no disk of its own can be mounted: ${(mounted.stderr ?? 'no mount').trim()})`

afterAll(() => {
  if (reason === '') spawnSync('umount', ['--lazy', disk])
  rmSync(disk, { recursive: true, force: true })
})

describe.skipIf(reason !== '')(`the store of one machine on a full disk${reason}`, () => {
  it('is unavailable, keeps what it had, and goes on when there is space', async () => {
    const bench = new StoreBench()
    const store = await bench.lmdb({ folder: join(disk, 'state') })
    try {
      await store.writeValue('before', 'kept')
      const filler = join(disk, 'something-else')
      const { bavail, bsize } = statfsSync(disk)
      writeFileSync(filler, Buffer.alloc(bavail * bsize))
      const large = 'x'.repeat(1_000)
      const fill = async (): Promise<void> => {
        for (let index = 0; index < 100; index += 1) await store.writeValue(`more ${index}`, large)
      }
      await expect(fill()).rejects.toMatchObject({
        code: 'STATE_UNAVAILABLE',
        message: expect.stringMatching(/can not be written: .*Free disk space/),
      })
      expect(await store.readValue('before')).toBe('kept')
      rmSync(filler)
      await eventually(() => fill().then(() => true))
      expect(await store.readValue('more 99')).toBe(large)
      expect(await store.readValue('before')).toBe('kept')
    } finally {
      await bench.end()
    }
  })
})
