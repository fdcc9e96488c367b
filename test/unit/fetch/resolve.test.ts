import { describe, expect, it } from 'vitest'
import { createHostLookup, type LookupAll } from '../../../src/fetch/resolve.ts'

const asked: string[] = []
const system: LookupAll = (hostname, callback) => {
  asked.push(hostname)
  if (hostname === 'none.test') callback(null, [])
  else if (hostname === 'away.test') callback(Object.assign(new Error('try again'), { code: 'EAI_AGAIN' }), [])
  else callback(null, [{ address: '93.184.216.34', family: 4 }])
}

function found(resolve: Record<string, string>, hostname: string): Promise<string> {
  return new Promise((done, fail) => {
    createHostLookup(resolve, system)(hostname, (error, addresses) =>
      error === null ? done(addresses.map(({ address, family }) => `${address}/${family}`).join()) : fail(error),
    )
  })
}

describe('the address of a host', () => {
  it('is what fetch.resolve says, the first that matches, and the system is not asked', async () => {
    const resolve = { 'staging.example': '10.0.0.7', '*.example': '10.0.0.8', 'six.test': '[fd00::7]' }
    expect(await found(resolve, 'staging.example')).toBe('10.0.0.7/4')
    expect(await found(resolve, 'Shop.Example.')).toBe('10.0.0.8/4')
    expect(await found(resolve, 'example')).toBe('10.0.0.8/4')
    expect(await found(resolve, 'six.test')).toBe('fd00::7/6')
    expect(asked).toEqual([])
  })

  it('is what the system says where nothing matches', async () => {
    expect(await found({ '*.example': '10.0.0.8' }, 'example.com')).toBe('93.184.216.34/4')
    await expect(found({}, 'away.test')).rejects.toMatchObject({ code: 'EAI_AGAIN' })
  })

  it('does not exist where the system gives none', async () => {
    await expect(found({}, 'none.test')).rejects.toMatchObject({ code: 'ENOTFOUND' })
  })

  it('is given for a host in any script, and for nothing that is no host', async () => {
    expect(await found({ 'bücher.example': '10.0.0.7' }, 'xn--bcher-kva.example')).toBe('10.0.0.7/4')
    expect(() => createHostLookup({ 'a.example:80': '10.0.0.7' })).toThrow('"a.example:80" is no host')
  })

  it.each(['', 'localhost', '10.0.0.300', '10.0.0.7:80'])('is never %j', (text) => {
    expect(() => createHostLookup({ 'a.example': text })).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }))
  })
})
