import { afterEach, expect, it } from 'vitest'
import { createNameLookup } from '../../../src/fetch/name-lookup.ts'
import type { LookupAll } from '../../../src/fetch/resolve.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { type NameRecords, NameServer } from '../../support/name-server.ts'

let server: NameServer | undefined
afterEach(() => {
  server?.stop()
  server = undefined
})

const PUBLIC = '93.184.216.34'
const SIX = '2606:2800:220:1:248:1893:25c8:1946'

async function lookupWith(
  records: Record<string, NameRecords | 'silent'>,
  { clock = systemClock, hosts = [] as readonly string[] }: { clock?: typeof systemClock; hosts?: readonly string[] } = {},
) {
  const started = await NameServer.start(records)
  server = started
  const bySystem: string[] = []
  const system: LookupAll = (hostname, callback) => {
    bySystem.push(hostname)
    if (hostname.includes('private') || !hostname.includes('.')) callback(null, [{ address: '10.0.0.7', family: 4 }])
    else callback(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), [])
  }
  const lookup = createNameLookup({ clock, servers: () => [started.address], system, hosts: new Set(hosts) })
  const addressesOf = (hostname: string): Promise<string> =>
    new Promise((resolve, reject) => {
      lookup(hostname, (error, addresses) => (error === null ? resolve(addresses.map(({ address }) => address).join()) : reject(error)))
    })
  return { addressesOf, asked: started.asked, bySystem }
}

it('a name is asked of the name servers, IPv4 first, and without a thread of the system', async () => {
  const { addressesOf, bySystem } = await lookupWith({ 'shop.test': { A: PUBLIC, AAAA: SIX }, 'six.test': { AAAA: SIX } })
  expect(await addressesOf('Shop.test.')).toBe(`${PUBLIC},${SIX}`)
  expect(await addressesOf('six.test')).toBe(SIX)
  expect(bySystem).toEqual([])
})

it('names whose servers are silent hold up no other', async () => {
  const dead = Array.from({ length: 100 }, (_, index) => `dead-${index}.test`)
  const { addressesOf } = await lookupWith({
    ...Object.fromEntries(dead.map((name) => [name, 'silent'] as const)),
    'shop.test': { A: PUBLIC },
  })
  let isDead = false
  for (const name of dead) addressesOf(name).catch(() => (isDead = true))
  expect(await addressesOf('shop.test')).toBe(PUBLIC)
  expect(isDead).toBe(false)
})

it('a name is asked once while it is asked, and for as long as an address is kept', async () => {
  const clock = new ManualClock()
  const { addressesOf, asked } = await lookupWith({ 'six.test': { A: PUBLIC, AAAA: SIX } }, { clock })
  expect(await Promise.all([addressesOf('six.test'), addressesOf('six.test')])).toEqual([`${PUBLIC},${SIX}`, `${PUBLIC},${SIX}`])
  await clock.advance(59_000)
  await addressesOf('six.test')
  expect(asked.toSorted()).toEqual(['A six.test', 'AAAA six.test'])
  await clock.advance(2_000)
  await addressesOf('six.test')
  expect(asked).toHaveLength(4)
})

it('the system is asked for what is none of the name servers, and for what they do not know', async () => {
  const { addressesOf, asked, bySystem } = await lookupWith({ 'staging.shop.test': { A: PUBLIC } }, { hosts: ['staging.shop.test'] })
  expect(await addressesOf('redis')).toBe('10.0.0.7')
  await expect(addressesOf('staging.shop.test')).rejects.toMatchObject({ code: 'ENOTFOUND' })
  await expect(addressesOf('printer.local')).rejects.toMatchObject({ code: 'ENOTFOUND' })
  expect(asked).toEqual([])
  expect(await addressesOf('wiki.private.test')).toBe('10.0.0.7')
  await expect(addressesOf('gone.test')).rejects.toMatchObject({ code: 'ENOTFOUND' })
  await expect(addressesOf('gone.test')).rejects.toMatchObject({ code: 'ENOTFOUND' })
  expect(bySystem).toEqual(['redis', 'staging.shop.test', 'printer.local', 'wiki.private.test', 'gone.test', 'gone.test'])
})

it('what is no name is not there', async () => {
  const { addressesOf } = await lookupWith({})
  await expect(addressesOf('foo..test')).rejects.toMatchObject({ code: 'ENOTFOUND' })
  await expect(addressesOf(`${'x'.repeat(64)}.test`)).rejects.toMatchObject({ code: 'ENOTFOUND' })
})

it('a name whose servers are silent is a failure of theirs after ten seconds, not a name that is not there', async () => {
  const clock = new ManualClock()
  const { addressesOf, bySystem } = await lookupWith({ 'dead.test': 'silent' }, { clock })
  const asked = addressesOf('dead.test')
  const failed = expect(asked).rejects.toMatchObject({ code: 'ETIMEOUT' })
  await clock.advance(10_000)
  await failed
  expect(bySystem).toEqual([])
})

it('which name servers there are is read again each minute, since a machine may change its network', async () => {
  const clock = new ManualClock()
  const first = await NameServer.start({ 'a.test': { A: PUBLIC, AAAA: SIX }, 'b.test': 'silent' })
  server = await NameServer.start({ 'b.test': { A: PUBLIC, AAAA: SIX } })
  let servers = [first.address]
  const lookup = createNameLookup({ clock, servers: () => servers, hosts: new Set() })
  const addressesOf = (hostname: string): Promise<unknown> =>
    new Promise((resolve) => lookup(hostname, (_, addresses) => resolve(addresses.map(({ address }) => address))))
  expect(await addressesOf('a.test')).toEqual([PUBLIC, SIX])
  servers = [server.address]
  await clock.advance(61_000)
  expect(await addressesOf('b.test')).toEqual([PUBLIC, SIX])
  first.stop()
})

it('of a name with thousands of addresses the first of each family are given and kept, the same to whoever asks', async () => {
  const many = Array.from({ length: 3_000 }, (_, index) => [
    { address: `93.184.${index >> 8}.${index & 255}`, family: 4 },
    { address: `2606:2800::${index.toString(16)}`, family: 6 },
  ]).flat()
  const lookup = createNameLookup({ clock: new ManualClock(), hosts: new Set(), system: (_, callback) => callback(null, many) })
  const addresses = (): Promise<unknown> => new Promise((resolve) => lookup('many', (_, found) => resolve(found)))
  const [first, second] = await Promise.all([addresses(), addresses()])
  expect([first, second, await addresses()]).toEqual(Array(3).fill(many.slice(0, 16)))
})
