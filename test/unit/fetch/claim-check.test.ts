import { describe, expect, it } from 'vitest'
import { pageOf } from '../../../src/extract/test-extractor.ts'
import { ClaimCheck, claimCheckOf } from '../../../src/fetch/claim-check.ts'
import { MillraceError } from '../../../src/kernel/errors.ts'
import { recordingObserver } from '../../support/kafka-fixture.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const page = pageOf(Buffer.from('a large body'), 'https://a.example/', { fetchedAt: 1 })

function setup(failures: readonly MillraceError[]) {
  const puts: [string, string][] = []
  const left = [...failures]
  const clock = new ManualClock()
  const { observer, count } = recordingObserver()
  const ending = new AbortController()
  const blobs = {
    location: 'the store',
    put: async (ref: string, bytes: Buffer) => {
      const failure = left.shift()
      if (failure !== undefined) throw failure
      puts.push([ref, bytes.toString()])
    },
  }
  const claimCheck = new ClaimCheck({ blobs, clock, observer, random: () => 0, signal: ending.signal })
  return { puts, clock, count, claimCheck, ending }
}

describe('a page that is too large for its message', () => {
  it('leaves its body in the store, under its sha256 and codec, and names it', async () => {
    const { claimCheck, puts, count } = setup([])
    const stored = await claimCheck.store(page)
    expect(stored).toEqual({ ...page, body: Buffer.alloc(0), bodyRef: `${page.bodySha256}.identity` })
    expect(puts).toEqual([[`${page.bodySha256}.identity`, 'a large body']])
    expect(count('BlobWritten')).toBe(1)
  })

  it('is tried again while the store is away or full, with longer and longer pauses', async () => {
    const { claimCheck, puts, clock, count } = setup([
      new MillraceError('BLOBS_UNREACHABLE', 'away'),
      new MillraceError('DISK_FULL', 'full'),
    ])
    const storing = claimCheck.store(page)
    await clock.advance(250)
    expect([puts.length, count('BlobStoreRetried')]).toEqual([0, 2])
    await clock.advance(500)
    expect((await storing).bodyRef).not.toBeNull()
    expect(puts).toHaveLength(1)
  })

  it('is not tried again where the store refuses it, and not when the worker ends', async () => {
    const refused = setup([new MillraceError('BLOBS_REFUSED', 'no')])
    await expect(refused.claimCheck.store(page)).rejects.toMatchObject({ code: 'BLOBS_REFUSED' })
    const away = setup([new MillraceError('BLOBS_UNREACHABLE', 'away')])
    const storing = away.claimCheck.store(page)
    away.ending.abort(new MillraceError('ABORTED', 'the worker ends'))
    await expect(storing).rejects.toMatchObject({ code: 'ABORTED' })
  })

  it('is left behind when the worker ends while the store hangs', async () => {
    const ending = new AbortController()
    const blobs = { location: 'the store', put: () => new Promise<void>(() => undefined) }
    const { observer } = recordingObserver()
    const storing = new ClaimCheck({ blobs, clock: new ManualClock(), observer, random: () => 0, signal: ending.signal }).store(page)
    ending.abort(new MillraceError('ABORTED', 'the worker ends'))
    await expect(storing).rejects.toMatchObject({ code: 'ABORTED' })
  })

  it('has no such way where no store is configured', () => {
    const { clock } = setup([])
    const { observer } = recordingObserver()
    expect(claimCheckOf({ clock, observer, random: Math.random, signal: new AbortController().signal })).toBeUndefined()
  })
})
