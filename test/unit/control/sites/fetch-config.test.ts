import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import type { Config } from '../../../../src/config/options.ts'
import { doctor } from '../../../../src/control/inspect/doctor.ts'
import { checkFetchConfig } from '../../../../src/control/sites/fetch-config.ts'
import { systemClock } from '../../../../src/kernel/clock.ts'
import { silentObserver } from '../../../../src/kernel/observe.ts'

const configOf = (...sets: string[]): Config => loadConfig({ sets, flags: {}, environment: {} }).config
const check = (...sets: string[]): Promise<void> => checkFetchConfig(configOf(...sets))

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

  it('is what doctor looks at before it asks anybody', async () => {
    const checks: string[] = []
    const options = { clock: systemClock, observer: silentObserver, signal: new AbortController().signal }
    for await (const { check: what, level, text, fix } of doctor({
      ...options,
      config: configOf('fetch.proxies=socks4://proxy.example:1'),
    })) {
      checks.push(what)
      if (level !== 'fail') continue
      expect([what, text]).toEqual(['configuration', expect.stringContaining('socks4')])
      expect(fix).toMatch(/./)
      break
    }
    expect(checks).not.toContain('Kafka')
    expect(checks.at(-1)).toBe('configuration')
  })
})
