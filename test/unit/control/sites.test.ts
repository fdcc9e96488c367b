import { describe, expect, it } from 'vitest'
import { beyondSite, siteOrigins } from '../../../src/control/sites.ts'

describe('the origins whose robots.txt a site has', () => {
  it.each<[string, readonly string[]]>([
    ['shop.example', []],
    ['https://shop.example/a', []],
    ['http://shop.example:80/', []],
    ['http://Shop.example:8080/a?b', ['http://shop.example:8080']],
    ['https://[::1]:8443/', ['https://[::1]:8443']],
    ['shop.example:8080', ['http://shop.example:8080', 'https://shop.example:8080']],
  ])('of %s are %j', (text, origins) => {
    expect(siteOrigins(text)).toEqual(origins)
  })
})

describe('what counts for nothing in the name of a site', () => {
  it.each<[string, string | undefined]>([
    ['shop.example', undefined],
    ['https://shop.example', undefined],
    ['https://shop.example:443/', undefined],
    ['https://shop.example/a/b', '/a/b'],
    ['shop.example/a', '/a'],
    ['shop.example:8080', ':8080'],
    ['http://shop.example:8080/a?b=1#c', ':8080/a?b=1#c'],
  ])('of %s is %s', (text, beyond) => {
    expect(beyondSite(text)).toBe(beyond)
  })
})
