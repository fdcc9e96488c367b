import { describe, expect, it } from 'vitest'
import { configAdvice } from '../../../src/config/advice.ts'
import { loadConfig } from '../../../src/config/load.ts'

const about = (userAgent?: string): string[] => {
  const sets = userAgent === undefined ? [] : [`fetch.userAgent=${userAgent}`]
  return configAdvice(loadConfig({ sets, flags: {}, environment: {} }).config).filter((line) => line.startsWith('fetch.userAgent'))
}

describe('advice on the user agent', () => {
  it('asks for one where there is none, since any public site may be asked', () => {
    expect(about()).toEqual([expect.stringContaining('fetch.userAgent is not set')])
  })

  it.each(['examplebot/1.0', 'examplebot/1.0 (team)'])('asks for a contact in %j', (name) => {
    expect(about(name)).toEqual([expect.stringContaining(`${JSON.stringify(name)} names no contact`)])
  })

  it.each(['bot/1.0 (+https://example.com/bot)', 'bot/1.0 (ops@example.com)', 'bot (www.example.com)'])(
    'has nothing to say of %j',
    (name) => {
      expect(about(name)).toEqual([])
    },
  )

  it('tells of one by which no robots.txt could speak to the bot', () => {
    expect(about('Mozilla/5.0 (X11; Linux) Firefox/130.0 (+https://foo.test)')).toEqual([expect.stringContaining('no name but Mozilla')])
    expect(about('Mozilla/5.0 (X11; compatible; FooBot/1.0; +https://foo.test)')).toEqual([])
  })
})

describe('advice on topics', () => {
  const on = (...sets: string[]): string[] =>
    configAdvice(loadConfig({ sets, flags: {}, environment: {} }).config).filter((line) => line.startsWith('topics.'))

  it.each(['html', 'urls', 'records', 'outcomes', 'deadLetters'])('looks twice at %s that are kept for a moment', (name) => {
    expect(on(`topics.retention.${name}=1ms`)).toEqual([expect.stringMatching(`^topics\\.retention\\.${name} is 1ms: .* come too late$`)])
    expect(on(`topics.retention.${name}=1h`)).toEqual([])
  })

  it('looks twice at thousands of partitions', () => {
    expect(on('topics.partitions.html=1001')).toEqual([expect.stringContaining('topics.partitions.html is 1001')])
    expect(on('topics.partitions.html=1000')).toEqual([])
  })
})

describe('advice on logins', () => {
  const login = ['brokers=kafka.example:9092', 'kafka.sasl.mechanism=plain', 'kafka.sasl.username=me', 'kafka.sasl.password=secret']
  const on = (...sets: string[]): string[] =>
    configAdvice(loadConfig({ sets, flags: {}, environment: {} }).config).filter((line) => line.startsWith('kafka.'))

  it('looks twice at a password that goes over the wire as it is', () => {
    expect(on(...login)).toEqual([expect.stringContaining('the password goes over the wire as it is')])
    expect(on(...login, 'kafka.ssl=true')).toEqual([])
    expect(on(...login, 'kafka.sasl.mechanism=scram-sha-512')).toEqual([])
  })
})
