import { describe, expect, it } from 'vitest'
import { type Standing, standingThrough } from '../../../src/control/shadow-replay.ts'
import { NO_TOTALS } from '../../../src/extract/offset-metadata.ts'

const behind: Standing = { done: 26n, isThrough: false, totals: { ...NO_TOTALS, pages: 26, deadLetters: 26 } }
const through: Standing = { done: 40n, isThrough: true, totals: { ...NO_TOTALS, pages: 40, deadLetters: 40 } }

/** Shape: what is told of a shadow whose group was seen so, look by look, and how long that took, ms. */
async function toldOf(seen: (look: number) => Standing): Promise<{ standing: Standing; ms: number }> {
  let [look, ms] = [0, 0]
  const sleep = async (forMs: number): Promise<void> => {
    ms += forMs
  }
  return { standing: await standingThrough(async () => seen(look++), { sleep }), ms }
}

describe('the totals of a shadow that is through', () => {
  it('are those of all pages, where the last offsets can not be read yet', async () => {
    expect(await toldOf((look) => (look < 3 ? behind : through))).toEqual({ standing: through, ms: 600 })
    expect(await toldOf(() => through)).toEqual({ standing: through, ms: 0 })
  })

  it('are not waited for without end', async () => {
    const { standing, ms } = await toldOf(() => behind)
    expect(standing).toEqual(behind)
    expect(ms).toBeLessThanOrEqual(10_000)
  })
})
