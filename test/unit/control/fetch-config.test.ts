import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import { checkFetchConfig } from '../../../src/control/fetch-config.ts'

const check = (...sets: string[]): Promise<void> => checkFetchConfig(loadConfig({ sets, flags: {}, environment: {} }).config)

describe('what fetch reads out of its options', () => {
  it.each([
    ['fetch.allowAddresses=localhost', 'CONFIG_INVALID', /no address range/],
    ['fetch.resolve=a.example=nowhere', 'CONFIG_INVALID', /is no address/],
    ['fetch.proxies=socks4://proxy.example:1', 'CONFIG_INVALID', /has the scheme socks4/],
    ['politeness.rules=[{ match: a.example, proxies: ["proxy:1"] }]', 'CONFIG_INVALID', /proxies/],
    ['fetch.tls.ca=/no/such/file.pem', 'CONFIG_UNREADABLE', /can not be read/],
  ])('is refused before anything starts: %s', async (set, code, message) => {
    await expect(check(set)).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
  })

  it('is taken where it can be read', async () => {
    await check(
      'fetch.allowAddresses=127.0.0.0/8,fd00::/8',
      'fetch.resolve=*.example=127.0.0.1',
      'fetch.proxies=http://me:pw@proxy.example',
    )
  })
})
