import { expect, it } from 'vitest'
import { Millrace } from '../../../src/index.ts'

it('a single string is no list of URLs: its letters are not taken for them', async () => {
  const millrace = new Millrace()
  const refused = { code: 'USAGE', message: expect.stringContaining('["https://books.example/"]') }
  // @ts-expect-error: nor does it compile.
  await expect(millrace.produce('https://books.example/')).rejects.toMatchObject(refused)
  // @ts-expect-error: nor does it compile.
  await expect(millrace.run('https://books.example/')).rejects.toMatchObject(refused)
  await millrace.stop()
})
