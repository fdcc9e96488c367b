import { describe, expect, it } from 'vitest'
import { WorkSet } from '../../../src/kernel/work-set.ts'

describe('work under way', () => {
  it('is settled when all of it has ended, and what it began as well', async () => {
    const work = new WorkSet(() => undefined)
    const done: string[] = []
    let begin = (): void => undefined
    const begun = new Promise<void>((resolve) => {
      begin = resolve
    })
    work.run(async () => {
      await begun
      work.run(async () => {
        await Promise.resolve()
        done.push('second')
      })
      done.push('first')
    })
    const settled = work.settled().then(() => done.push('settled'))
    begin()
    await settled
    expect(done).toEqual(['first', 'second', 'settled'])
  })

  it('tells of what fails, and is settled all the same', async () => {
    const failures: unknown[] = []
    const work = new WorkSet((error) => failures.push(error))
    work.run(() => Promise.reject(new Error('broken')))
    await work.settled()
    expect(failures).toEqual([new Error('broken')])
  })

  it('is not waited for when the signal comes, or has come', async () => {
    const work = new WorkSet(() => undefined)
    work.run(() => new Promise(() => undefined))
    const ending = new AbortController()
    const settled = work.settled(ending.signal)
    ending.abort()
    await settled
    await work.settled(ending.signal)
  })
})
