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
})
