import { describe, expect, it } from 'vitest'
import { siteOrigins } from '../../../src/control/sites.ts'

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
