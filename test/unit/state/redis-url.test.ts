import { describe, expect, it } from 'vitest'
import { parseRedisUrl, redactRedisUrl } from '../../../src/state/redis/redis-url.ts'

const SECRET = 's3cr%40t/?#'

describe('parseRedisUrl', () => {
  it.each([
    ['redis://h', { db: 0, tls: false, target: { kind: 'server', host: 'h', port: 6379 } }],
    ['redis://h:7000/3', { db: 3, tls: false, target: { kind: 'server', host: 'h', port: 7000 } }],
    ['rediss://u:p%40@h', { db: 0, tls: true, username: 'u', password: 'p@', target: { kind: 'server', host: 'h', port: 6379 } }],
    ['rediss://h?ca=/a.pem&cert=b.pem&key=c%20d', { files: { ca: '/a.pem', cert: 'b.pem', key: 'c d' } }],
    [
      'rediss://redis.example:6380/0?cert=/c.pem&key=/k.pem&passphrase=p@ss',
      {
        location: 'rediss://redis.example:6380/0',
        files: { cert: '/c.pem', key: '/k.pem', passphrase: 'p@ss' },
        target: { kind: 'server', host: 'redis.example', port: 6380 },
      },
    ],
    ['rediss://u:p@h?ca=/etc/ca@prod/a+b=c.pem', { location: 'rediss://***@h', username: 'u', files: { ca: '/etc/ca@prod/a+b=c.pem' } }],
    ['redis://:p:q@[::1]:6380', { password: 'p:q', target: { kind: 'server', host: '::1', port: 6380 } }],
    ['redis://:a@b@h', { password: 'a@b', target: { kind: 'server', host: 'h' } }],
    [
      'redis+sentinel://:p@a:1,b/main?db=2&sentinelPassword=q',
      {
        db: 2,
        password: 'p',
        target: {
          kind: 'sentinel',
          name: 'main',
          sentinelPassword: 'q',
          sentinels: [
            { host: 'a', port: 1 },
            { host: 'b', port: 26379 },
          ],
        },
      },
    ],
  ])('reads %s', (url, expected) => {
    expect(parseRedisUrl(url)).toMatchObject(expected)
  })

  it.each([
    'http://h',
    'localhost:6379',
    'redis://',
    'redis://h:0',
    'redis://h:70000',
    'redis://h/x',
    'redis://a,b',
    'redis+sentinel://a',
    'redis://:%zz@h',
    'redis://h?ca=ca.pem',
    'rediss://h?cert=me.pem',
    'rediss://h?CA=ca.pem',
    'rediss://h?ca=a.pem&ca=b.pem',
    'rediss://h?passphrase=hush',
    'redis://h?sentinelPassword=hush',
    `redis://s3cr:1?s3cr=1@h`,
    `redis://:${SECRET}@h:x`,
    `redis://user:${SECRET}@`,
  ])('refuses %s and says what was expected, without the password', (url) => {
    let message = ''
    try {
      parseRedisUrl(url)
    } catch (error) {
      expect(error).toMatchObject({ code: 'CONFIG_INVALID' })
      message = (error as Error).message
    }
    expect(message).toContain('expected redis://')
    expect(message).not.toContain('s3cr')
    expect(message).not.toContain('%zz')
  })
})

describe('redactRedisUrl', () => {
  it('leaves out user, password and query, whatever the form', () => {
    expect(redactRedisUrl('redis://u:p@h:1/2?password=x')).toBe('redis://***@h:1/2')
    expect(redactRedisUrl('redis+sentinel://:p@w@a:1,b:2/m?sentinelPassword=q')).toBe('redis+sentinel://***@a:1,b:2/m')
    expect(redactRedisUrl('redis://u:1?p@h')).toBe('redis://***')
    expect(redactRedisUrl('redis://h')).toBe('redis://h')
    expect(redactRedisUrl('u:p@h')).toBe('***@h')
  })
})
