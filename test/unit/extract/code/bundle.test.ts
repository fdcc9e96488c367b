import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { bundleModule } from '../../../../src/extract/code/bundle.ts'

const folder = mkdtempSync(join(tmpdir(), 'bundle-'))
afterAll(() => rmSync(folder, { recursive: true }))

describe('a module that can not be an extractor', () => {
  it('is refused where it waits while it is loaded, in words that speak of it', async () => {
    const file = join(folder, 'a.ts')
    writeFileSync(file, `import { defineExtractor } from 'millrace'\n\nconst x = await Promise.resolve(1)\nexport default x\n`)
    await expect(bundleModule(file)).rejects.toMatchObject({
      code: 'EXTRACTOR_INVALID',
      message: `${file}:3:11 an extractor is loaded without waiting: \`await\` outside of a function is not possible`,
    })
  })

  it.each([
    ['export default {\n  name: "a",\n\n', '2:13 Expected identifier but found end of file'],
    ['export const x = `a\n\n', '1:20 Unterminated string literal'],
    ['export const x = 1 /* a\n', '1:20 Expected "*/" to terminate multi-line comment'],
    ['export const x = "a\n', '1:20 Unterminated string literal'],
  ])('is refused within it, where its end is missing: %j', async (text, problem) => {
    const file = join(folder, 'b.ts')
    writeFileSync(file, text)
    await expect(bundleModule(file)).rejects.toMatchObject({ code: 'EXTRACTOR_INVALID', message: `${file}:${problem}` })
  })
})
