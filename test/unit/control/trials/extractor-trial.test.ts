import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import { diffExtractors } from '../../../../src/control/trials/extractor-trial.ts'
import { systemClock } from '../../../../src/kernel/clock.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-trial-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

describe('what changes from one extractor to another', () => {
  it('is told with the pages that each of them would not read in a crawl', async () => {
    const before = file('before.yaml', 'name: x\nversion: 1\nfields:\n  title: h1\n')
    const after = file('after.yaml', 'name: x\nversion: 2\nmatch: { hosts: [b.example] }\nfields:\n  title: h1\n')
    const path = file('page.html', '<h1>a</h1>')
    const pages = ['http://a.example/1', 'http://a.example/2', 'http://b.example/'].map((url) => ({ kind: 'file' as const, path, url }))
    const diff = await diffExtractors({ before, after }, pages, {
      config: loadConfig({ sets: [], flags: {}, environment: {} }).config,
      version: '0',
      clock: systemClock,
      openRuntime: () => Promise.reject(new Error('a saved page needs no broker')),
      onOutput: () => undefined,
      signal: new AbortController().signal,
    })
    expect(diff).toMatchObject({ pages: 3, unmatched: { before: 0, after: 2 }, changes: [] })
  })
})
