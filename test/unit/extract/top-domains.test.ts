import { describe, expect, it } from 'vitest'
import { TopDomains } from '../../../src/extract/top-domains.ts'

const labels = (domains: TopDomains, names: readonly string[]): string[] => names.map((name) => domains.labelOf(name))

describe('domains with a label of their own', () => {
  it('are those with sixteen pages, as long as there are few', () => {
    const domains = new TopDomains(20)
    for (let page = 0; page < 16; page += 1) domains.add('a.example')
    for (let page = 0; page < 15; page += 1) domains.add('b.example')
    expect(labels(domains, ['a.example', 'b.example', 'c.example'])).toEqual(['a.example', 'other', 'other'])
  })

  it('are not the first that come where thousands of sites have an equal share', () => {
    const domains = new TopDomains(4)
    for (let round = 0; round < 50; round += 1) for (let site = 0; site < 2_000; site += 1) domains.add(`s${site}.example`)
    expect(labels(domains, ['s0.example', 's1.example', 's1999.example'])).toEqual(['other', 'other', 'other'])
    for (let page = 0; page < 50_000; page += 1) domains.add('big.example')
    expect(domains.labelOf('big.example')).toBe('big.example')
  })

  it('keep their label, and are never more than was said', () => {
    const domains = new TopDomains(2)
    for (const name of ['a.example', 'b.example', 'c.example']) for (let page = 0; page < 500; page += 1) domains.add(name)
    expect(labels(domains, ['a.example', 'b.example', 'c.example'])).toEqual(['a.example', 'b.example', 'other'])
    const none = new TopDomains(0)
    for (let page = 0; page < 500; page += 1) none.add('a.example')
    expect(none.labelOf('a.example')).toBe('other')
  })
})
