import { describe, expect, it } from 'vitest'
import { hostsOf, refuseSplitState } from '../../../../src/control/groups/split-state.ts'
import { ownAddresses } from '../../../../src/machine/own-addresses.ts'

const OWN = new Set(['127.0.0.1', '::1', '10.0.0.5', '2001:db8::5'])

describe('hosts of the members of a group', () => {
  it.each([
    [['10.0.0.5', '2001:db8::5', '::1', '::ffff:10.0.0.5', '127.0.0.1', '2001:DB8:0:0:0:0:0:5'], ['this machine']],
    [
      ['0:0:0:0:0:0:0:1', 'fe80:0:0:0:0:0:0:1%eth0', 'fe80::1'],
      ['this machine', 'fe80::1'],
    ],
    [
      ['10.0.0.5', '10.0.0.6'],
      ['this machine', '10.0.0.6'],
    ],
    // Behind a translation of addresses all of this machine have another one.
    [['192.0.2.1', '192.0.2.1', '::ffff:192.0.2.1'], ['192.0.2.1']],
    [[], []],
  ])('%j are %j', (addresses, hosts) => {
    expect(hostsOf(addresses, OWN)).toEqual(hosts)
  })

  it('knows the loopback of this machine', () => {
    expect(ownAddresses()).toContain('127.0.0.1')
  })
})

describe('state in the data folder', () => {
  const ask = (hosts: readonly string[], { redis, isEmbedded = false }: { redis?: string; isEmbedded?: boolean } = {}) => {
    const admin = { describeGroup: async () => ({ members: hosts.map((host) => ({ host })) }) }
    return refuseSplitState({ config: { redis }, isEmbedded, admin } as never, 'g', OWN)
  }

  it('is refused where the group has members on two hosts, and not where these are one by two addresses', async () => {
    await expect(ask(['10.0.0.5', '10.0.0.6'])).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
    await expect(ask(['10.0.0.5', '2001:db8::5'])).resolves.toBeUndefined()
    await expect(ask(['10.0.0.5', '10.0.0.6'], { redis: 'redis://r' })).resolves.toBeUndefined()
    await expect(ask(['10.0.0.5', '10.0.0.6'], { isEmbedded: true })).resolves.toBeUndefined()
  })
})
