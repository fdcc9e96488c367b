import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import type { Config } from '../../../../src/config/options.ts'
import { certificateFindings } from '../../../../src/control/runtime/tls-config.ts'
import { certificateEnds } from '../../../../src/machine/tls-files.ts'
import { CA, CLIENT, CLIENT_EXPIRED, CLIENT_KEY } from '../../../support/test-pki.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-tls-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function write(name: string, text: string): string {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

const DAY_MS = 86_400_000
const key = write('me.key', CLIENT_KEY)
const ca = write('ca.pem', CA)
const cert = write('me.pem', CLIENT)
const [caEnds = 0] = certificateEnds(CA)
const [certEnds = 0] = certificateEnds(CLIENT)

const found = (config: object, now: number): string[] =>
  certificateFindings(config as Config, now).map(({ isOver, text }) => `${isOver ? 'over' : 'soon'}: ${text}`)

describe('a certificate that ends within two weeks', () => {
  const redis = `rediss://redis:6379?ca=${ca}&cert=${cert}&key=${key}`

  it.each<[string, object, string, number]>([
    ['the CA of the brokers', { 'kafka.tls.ca': ca }, `the CA ${ca} (kafka.tls.ca)`, caEnds],
    ['what the brokers are shown', { 'kafka.tls.cert': cert, 'kafka.tls.key': key }, `the certificate ${cert} (kafka.tls.cert)`, certEnds],
    ['the CA of the registry', { 'registry.tls.ca': ca }, `the CA ${ca} (registry.tls.ca)`, caEnds],
    ['the CA of sites', { 'fetch.tls.ca': ca }, `the CA ${ca} (fetch.tls.ca)`, caEnds],
    ['the CA of Redis', { redis }, `the CA ${ca} (\`ca\` of the redis URL)`, caEnds],
    ['what Redis is shown', { redis }, `the certificate ${cert} (\`cert\` of the redis URL)`, certEnds],
  ])('is told: %s', (_, config, text, endsAt) => {
    const until = new Date(endsAt).toISOString()
    expect(found(config, endsAt - 15 * DAY_MS).join()).not.toContain(text)
    expect(found(config, endsAt - 13 * DAY_MS)).toContain(`soon: ${text} is valid until ${until}`)
    expect(found(config, endsAt)).toContain(`over: ${text} was valid until ${until}`)
  })

  it('is any of a chain that is shown, and of those that are trusted the last', () => {
    const chain = write('chain.pem', `${CLIENT}\n${CLIENT_EXPIRED}`)
    expect(found({ 'kafka.tls.cert': chain, 'kafka.tls.key': key }, Date.UTC(2030, 0, 1))).toEqual([
      `over: the certificate ${chain} (kafka.tls.cert) was valid until 2021-01-01T00:00:00.000Z`,
    ])
    const next = write('next.pem', `${CLIENT_EXPIRED}\n${CA}`)
    expect(found({ 'kafka.tls.ca': next }, Date.UTC(2030, 0, 1))).toEqual([])
  })
})
