import { expect, it } from 'vitest'
import { openedOnce } from '../../../src/kernel/opened-once.ts'

it('what is opened once is opened by the first who asks, and anew where that failed', async () => {
  const fates: Promise<string>[] = [Promise.reject(new Error('away')), Promise.resolve('there')]
  let openings = 0
  const open = openedOnce(() => fates[openings++] as Promise<string>)
  const [first, second] = [open(), open()]
  expect(second).toBe(first)
  await expect(first).rejects.toThrow('away')
  expect(await open()).toBe('there')
  expect(await open()).toBe('there')
  expect(openings).toBe(2)
})
