import { expect, it } from 'vitest'
import { WatchedBlobs } from '../../../src/blobs/watched-blobs.ts'
import { MillraceError } from '../../../src/kernel/errors.ts'
import { Outage } from '../../../src/kernel/outage.ts'
import { recordingObserver } from '../../support/kafka-fixture.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const AWAY = new MillraceError('BLOBS_UNREACHABLE', 'the blob store does not answer')

function setup() {
  const clock = new ManualClock()
  const seen = recordingObserver()
  const outage = new Outage('blobs', { clock, observer: seen.observer })
  const fails = (error: Error): Promise<unknown> => outage.watch(() => Promise.reject(error)).catch((thrown: unknown) => thrown)
  const told = (): string[] => seen.events.map(({ event }) => event)
  return { clock, outage, fails, told }
}

it('an outage is told once when it begins and once when it ends, however often it is asked meanwhile', async () => {
  const { outage, fails, told } = setup()
  await outage.watch(async () => 'there')
  expect([outage.isAway, told()]).toEqual([false, []])
  for (let time = 0; time < 3; time += 1) expect(await fails(AWAY)).toBe(AWAY)
  expect([outage.isAway, told()]).toEqual([true, ['BlobStorePaused']])
  for (let time = 0; time < 3; time += 1) expect(await outage.watch(async () => 'there')).toBe('there')
  expect([outage.isAway, told()]).toEqual([false, ['BlobStorePaused', 'BlobStoreResumed']])
})

it('a store that is full is away, and one that refuses is there', async () => {
  const { outage, fails } = setup()
  await fails(new MillraceError('DISK_FULL', 'no space is left'))
  expect(outage.isAway).toBe(true)
  await fails(new MillraceError('BLOBS_REFUSED', 'no'))
  expect(outage.isAway).toBe(false)
})

it('a call that hangs counts as an outage until it is answered', async () => {
  const { clock, outage, told } = setup()
  let answer = (): void => undefined
  const call = outage.watch(() => new Promise<void>((resolve) => (answer = resolve)))
  await clock.advance(89_999)
  expect(outage.isAway).toBe(false)
  await clock.advance(1)
  expect([outage.isAway, told()]).toEqual([true, ['BlobStorePaused']])
  answer()
  await call
  expect([outage.isAway, clock.armedCount]).toEqual([false, 0])
})

it('a store that can not be written to is away, though it is read', async () => {
  const { outage, told } = setup()
  const full = new MillraceError('DISK_FULL', 'no space is left')
  await expect(outage.watch(() => Promise.reject(full), 'write')).rejects.toBe(full)
  await outage.watch(async () => 'read')
  expect([outage.isAway, told()]).toEqual([true, ['BlobStorePaused']])
  await outage.watch(async () => 'written', 'write')
  expect([outage.isAway, told()]).toEqual([false, ['BlobStorePaused', 'BlobStoreResumed']])
})

it('an outage that nobody has met for minutes is not claimed any more: whoever waited is gone', async () => {
  const { clock, outage, fails } = setup()
  await fails(AWAY)
  await clock.advance(299_999)
  expect(outage.isAway).toBe(true)
  await clock.advance(1)
  expect(outage.isAway).toBe(false)
})

it('the bodies that are written to and read from a blob store tell whether it is away', async () => {
  const { outage } = setup()
  let isAway = true
  const answer = async <T>(value: T): Promise<T> => {
    if (isAway) throw AWAY
    return value
  }
  const store = { location: 'the store', put: () => answer(undefined), get: () => answer(Buffer.from('body')) }
  const watched = new WatchedBlobs(store as never, outage)
  await expect(watched.put('ref', Buffer.alloc(1))).rejects.toBe(AWAY)
  expect(outage.isAway).toBe(true)
  isAway = false
  expect(await watched.get('ref', 10)).toEqual(Buffer.from('body'))
  expect(outage.isAway).toBe(true)
  await watched.put('ref', Buffer.alloc(1))
  expect(outage.isAway).toBe(false)
})
