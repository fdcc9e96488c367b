import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { describeConfig } from '../../../../src/config/describe.ts'
import { loadConfig } from '../../../../src/config/load.ts'
import { proxyRules } from '../../../../src/control/sites/proxy-rules.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-proxies-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function load(lines: readonly string[]) {
  const file = join(folder, 'millrace.yaml')
  writeFileSync(file, lines.join('\n'))
  return loadConfig({ sets: [], flags: {}, file })
}

const loaded = load([
  'fetch:',
  '  proxies: ["http://me:secret1@one.example:1", "socks5://two.example"]',
  'politeness:',
  '  rules:',
  '    - { match: "*.own.example", proxies: ["https://me:secret2@three.example"] }',
  '    - { match: direct.example, proxies: [] }',
  '    - { match: paced.example, ratePerSecond: 2 }',
])

describe('the proxies of the configuration', () => {
  it('are those of the first rule that matches and names some, else those of all', () => {
    const proxiesOf = proxyRules(loaded.config)
    const labels = (host: string) => proxiesOf(new URL(`https://${host}/`)).map(({ label }) => label)
    expect(labels('www.own.example')).toEqual(['https://three.example:443'])
    expect(labels('direct.example')).toEqual([])
    for (const host of ['paced.example', 'any.example']) expect(labels(host)).toEqual(['http://one.example:1', 'socks5://two.example:1080'])
  })

  it('are shown without user and password', () => {
    const shown = JSON.stringify(describeConfig(loaded))
    expect(shown).toContain('http://***@one.example:1,socks5://two.example')
    expect(shown).toContain('https://***@three.example')
    expect(shown).not.toMatch(/:secret|me:/)
  })

  it('are refused where they are none', () => {
    const bad = load(['fetch: { proxies: ["ftp://u:secret3@x.example"] }'])
    expect(() => proxyRules(bad.config)).toThrow(/has the scheme ftp/)
    expect(() => proxyRules(bad.config)).not.toThrow(/secret3/)
  })
})
