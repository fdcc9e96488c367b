import { describe, expect, it } from 'vitest'
import { createAddressPolicy } from '../../../src/fetch/address-policy.ts'

const strict = createAddressPolicy([])

describe('an address that may not be asked', () => {
  it.each([
    // IPv4
    ['0.0.0.0', 'unspecified'],
    ['0.1.2.3', 'unspecified'],
    ['10.0.0.1', 'private'],
    ['10.255.255.255', 'private'],
    ['100.64.0.1', 'carrierGradeNat'],
    ['100.127.255.255', 'carrierGradeNat'],
    ['100.100.100.200', 'carrierGradeNat'],
    ['127.0.0.1', 'loopback'],
    ['127.255.255.254', 'loopback'],
    ['169.254.0.1', 'linkLocal'],
    ['169.254.169.254', 'linkLocal'],
    ['169.254.170.2', 'linkLocal'],
    ['172.16.0.1', 'private'],
    ['172.31.255.255', 'private'],
    ['192.0.0.1', 'reserved'],
    ['192.0.0.192', 'reserved'],
    ['192.0.2.1', 'reserved'],
    ['192.88.99.1', 'reserved'],
    ['192.168.0.1', 'private'],
    ['198.18.0.1', 'reserved'],
    ['198.19.255.255', 'reserved'],
    ['198.51.100.7', 'reserved'],
    ['203.0.113.7', 'reserved'],
    ['224.0.0.1', 'multicast'],
    ['239.255.255.255', 'multicast'],
    ['240.0.0.1', 'reserved'],
    ['255.255.255.255', 'broadcast'],
    ['168.63.129.16', 'metadata'],
    // IPv6
    ['::', 'unspecified'],
    ['::1', 'loopback'],
    ['fc00::1', 'uniqueLocal'],
    ['fd00:ec2::254', 'uniqueLocal'],
    ['fe80::1', 'linkLocal'],
    ['fe80::1%eth0', 'linkLocal'],
    ['febf::1', 'linkLocal'],
    ['fec0::1', 'deprecatedSiteLocal'],
    ['ff02::1', 'multicast'],
    ['2001:db8::1', 'reserved'],
    ['3fff::1', 'reserved'],
    ['100::1', 'discard'],
    ['5f00::1', 'segmentRouting'],
    ['2001:2::1', 'benchmarking'],
    ['2001:20::1', 'orchid2'],
    ['4000::1', 'reserved'],
    ['8000::1', 'reserved'],
    // with an IPv4 address inside
    ['::ffff:127.0.0.1', 'loopback'],
    ['::ffff:7f00:1', 'loopback'],
    ['0:0:0:0:0:ffff:a9fe:a9fe', 'linkLocal'],
    ['::ffff:10.0.0.1', 'private'],
    ['::127.0.0.1', 'reserved'],
    ['::7f00:1', 'reserved'],
    ['::8.8.8.8', 'reserved'],
    ['::ffff:0:127.0.0.1', 'rfc6145'],
    ['64:ff9b::127.0.0.1', 'loopback'],
    ['64:ff9b::a9fe:a9fe', 'linkLocal'],
    ['64:ff9b::10.0.0.1', 'private'],
    ['64:ff9b:1::1', 'rfc6052'],
    ['64:ff9b:1::808:808', 'rfc6052'],
    ['2002:7f00:1::', '6to4'],
    ['2002:808:808::', '6to4'],
    ['2001::1', 'teredo'],
    ['2001:0:808:808::', 'teredo'],
    // no address at all
    ['', 'invalid'],
    ['localhost', 'invalid'],
    ['1.2.3.4.5', 'invalid'],
  ])('is %s (%s)', (address, range) => {
    expect(strict(address)).toBe(range)
  })
})

describe('an address that may be asked', () => {
  it.each([
    '1.1.1.1',
    '8.8.8.8',
    '9.255.255.255',
    '11.0.0.0',
    '100.63.255.255',
    '100.128.0.0',
    '126.255.255.255',
    '128.0.0.1',
    '169.253.255.255',
    '172.15.255.255',
    '172.32.0.0',
    '192.167.255.255',
    '192.169.0.0',
    '198.17.255.255',
    '198.20.0.0',
    '223.255.255.255',
    '::ffff:8.8.8.8',
    '64:ff9b::8.8.8.8',
    '2606:4700::1111',
    '2a00:1450:4001::1',
  ])('is %s', (address) => {
    expect(strict(address)).toBeUndefined()
  })

  it('is one that the operator allows, in every form that means it', () => {
    const policy = createAddressPolicy(['127.0.0.0/8', 'fd00::/8', '10.0.0.7'])
    expect(['127.0.0.1', '::ffff:127.9.9.9', '64:ff9b::127.0.0.1', 'fd12::1', '10.0.0.7'].map(policy)).toEqual(Array(5).fill(undefined))
    expect(['10.0.0.8', 'fc00::1', '::1', '128.0.0.1'].map(policy)).toEqual(['private', 'uniqueLocal', 'loopback', undefined])
  })

  it.each(['127.0.0.0/33', 'localhost', '10.0.0.0/', '/8', 'fd00::/129', ''])('is not said by %j, and that is an error', (range) => {
    expect(() => createAddressPolicy([range])).toThrow(
      expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringContaining(JSON.stringify(range)) }),
    )
  })
})

describe('a host that is an address in disguise', () => {
  it.each([
    'http://0x7f.1/',
    'http://0x7f000001/',
    'http://2130706433/',
    'http://0177.0.0.1/',
    'http://127.1/',
    'http://127.0.0.1./',
    'http://１２７.0.0.1/',
    'http://127。0。0。1/',
    'http://%31%32%37.0.0.1/',
    'http://[::ffff:127.0.0.1]/',
    'http://[0:0:0:0:0:ffff:7f00:1]/',
    'http://[::ffff:7f00:0001]/',
  ])('is written as the address by the URL parser, and judged: %s', (url) => {
    expect(strict(new URL(url).hostname.replace(/^\[|\]$/g, ''))).toBe('loopback')
  })
})
