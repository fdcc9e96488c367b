import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { extractorFiles } from '../../../../src/control/extractors/configured-extractors.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-extractors-'))
  for (const name of ['b.yaml', 'a.yaml', 'millrace.yaml', 'note.txt']) writeFileSync(join(folder, name), '')
})

afterEach(() => {
  rmSync(folder, { recursive: true })
})

describe('the extractor files of a pattern', () => {
  it('are all that match, without the configuration that lies beside them', () => {
    expect(extractorFiles([join(folder, '*.yaml')])).toEqual([join(folder, 'a.yaml'), join(folder, 'b.yaml')])
    expect(() => extractorFiles([join(folder, 'mill*.yaml')])).toThrow('no file matches')
  })

  it('are the one that is named, whatever it is', () => {
    expect(extractorFiles([join(folder, 'millrace.yaml')])).toEqual([join(folder, 'millrace.yaml')])
  })
})
