import { execFileSync } from 'node:child_process'
import { closeSync, constants, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { openOut } from '../../../src/cli/out-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-out-'))
afterAll(() => rmSync(folder, { recursive: true }))

const context = { out: async () => undefined, note: () => undefined }
const options = { appends: true, missing: (target: string) => `${target} lacks records` }

async function written(before: string, appends: boolean): Promise<string> {
  const target = join(folder, 'records.ndjson')
  writeFileSync(target, before)
  const out = await openOut(context, target, { ...options, appends })
  const write = await out.begin()
  await write({ title: 'new' })
  await out.end(new AbortController().signal)
  return readFileSync(target, 'utf8')
}

describe('the file of --out', () => {
  it.each([
    ['', '{"title":"new"}\n'],
    ['{"title":"old"}\n', '{"title":"old"}\n{"title":"new"}\n'],
    ['{"title":"old"}\n{"tit', '{"title":"old"}\n{"tit\n{"title":"new"}\n'],
  ])('is appended to from a new line on: %j', async (before, after) => {
    expect(await written(before, true)).toBe(after)
  })

  it('is emptied for a crawl of its own', async () => {
    expect(await written('{"tit', false)).toBe('{"title":"new"}\n')
  })

  it.skipIf(!existsSync('/dev/full'))('says what it lacks where there is no room', async () => {
    const out = await openOut(context, '/dev/full', options)
    const write = await out.begin()
    await write({ title: 'new' })
    await expect(out.end(new AbortController().signal)).rejects.toMatchObject({
      code: 'DISK_FULL',
      message: expect.stringMatching(/ENOSPC.*; \/dev\/full lacks records$/),
    })
  })

  it.skipIf(process.platform === 'win32')('says what it lacks where its reader has not read on in time', async () => {
    const target = join(folder, 'pipe')
    execFileSync('mkfifo', [target])
    const reader = openSync(target, constants.O_RDONLY | constants.O_NONBLOCK)
    const out = await openOut(context, target, options)
    const write = await out.begin()
    const late = new AbortController()
    const stuck = write({ title: 'x'.repeat(1_000_000) })
    const ended = out.end(late.signal)
    late.abort()
    await expect(ended).rejects.toMatchObject({ code: 'ABORTED', message: expect.stringContaining('pipe lacks records') })
    closeSync(reader)
    await expect(stuck).rejects.toThrow('pipe')
  })
})
