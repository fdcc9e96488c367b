import { describe, expect, it } from 'vitest'
import { SharedConnection } from '../../../src/kafka/shared-connection.ts'
import { systemClock } from '../../../src/kernel/clock.ts'

function numbered() {
  const log: string[] = []
  let next = 0
  const connection = new SharedConnection(
    systemClock,
    async () => {
      next += 1
      log.push(`open ${next}`)
      return next
    },
    async (number) => void log.push(`close ${number}`),
  )
  return { connection, log }
}

describe('shared connection', () => {
  it('opens once for all who use it', async () => {
    const { connection, log } = numbered()
    expect(await Promise.all([connection.use(async (one) => one), connection.use(async (one) => one)])).toEqual([1, 1])
    expect(log).toEqual(['open 1'])
  })

  it('closes a replaced connection when its last user has finished', async () => {
    const { connection, log } = numbered()
    let finish: () => void = () => undefined
    const using = connection.use(() => new Promise<void>((resolve) => (finish = resolve)))
    await connection.use(async () => undefined)
    connection.renew()
    expect(await connection.use(async (one) => one)).toBe(2)
    expect(log).toEqual(['open 1', 'open 2'])
    finish()
    await using
    expect(log).toEqual(['open 1', 'open 2', 'close 1'])
  })

  it('opens again after it could not be opened', async () => {
    let tries = 0
    const connection = new SharedConnection(
      systemClock,
      async () => {
        tries += 1
        if (tries === 1) throw new Error('away')
        return tries
      },
      async () => undefined,
    )
    await expect(connection.use(async () => undefined)).rejects.toThrow('away')
    expect(await connection.use(async (one) => one)).toBe(2)
  })

  it('closes once, and passes over a failure to close', async () => {
    let closed = 0
    const connection = new SharedConnection(
      systemClock,
      async () => 1,
      async () => {
        closed += 1
        throw new Error('broken')
      },
    )
    await connection.use(async () => undefined)
    await Promise.all([connection.close(), connection.close()])
    expect(closed).toBe(1)
  })
})
