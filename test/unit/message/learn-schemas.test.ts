import { describe, expect, it } from 'vitest'
import { MillraceError } from '../../../src/kernel/errors.ts'
import { learnSchemas } from '../../../src/message/learn-schemas.ts'

const values = [Buffer.from([0, 0, 0, 0, 7])]
const away = new MillraceError('REGISTRY_UNREACHABLE', 'away')

/** Answers each question with the next of these. */
function codec(answers: (Error | undefined)[]) {
  const asked: unknown[] = []
  return {
    asked,
    async ensureSchemas(given: Iterable<Buffer | null>) {
      asked.push(given)
      const answer = answers.shift()
      if (answer !== undefined) throw answer
    },
  }
}

describe('learning the schemas of messages', () => {
  it('waits for a registry that is away, a little longer each time', async () => {
    const waits: number[] = []
    const registry = codec([away, away, away, undefined])
    await learnSchemas(registry, values, { clock: { sleep: async (ms) => void waits.push(ms) } })
    expect(registry.asked).toEqual([values, values, values, values])
    expect(waits.map((ms) => ms >= 100)).toEqual([true, true, true])
    expect((waits[2] ?? 0) > (waits[0] ?? 0)).toBe(true)
  })

  it('ends with what the registry refuses, and with the signal', async () => {
    const refused = new MillraceError('REGISTRY_REFUSED', 'no')
    await expect(learnSchemas(codec([refused]), values, { clock: { sleep: async () => undefined } })).rejects.toBe(refused)
    const ended = new Error('ended')
    const clock = { sleep: () => Promise.reject(ended) }
    await expect(learnSchemas(codec([away]), values, { clock, signal: AbortSignal.abort(ended) })).rejects.toBe(ended)
  })
})
