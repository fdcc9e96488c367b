import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { certificateEnds, readCertificates, readTlsFiles } from '../../../src/machine/tls-files.ts'
import { CA, CLIENT, CLIENT_EXPIRED, CLIENT_KEY, CLIENT_KEY_ENCRYPTED, SERVER_KEY } from '../../support/test-pki.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-tls-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const NAMES = { ca: 'x.ca', cert: 'x.cert', key: 'x.key', passphrase: 'x.passphrase' }
function write(name: string, text: string): string {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}
const files = { ca: write('ca.pem', CA), cert: write('me.pem', CLIENT), key: write('me.key', CLIENT_KEY) }
const encrypted = write('encrypted.key', CLIENT_KEY_ENCRYPTED)

describe('a file of certificates', () => {
  it('is read, and refused where it holds none that can be read', () => {
    expect(readCertificates('x', write('good.pem', `comment\n${CA}\n${CLIENT}`)).match(/BEGIN CERTIFICATE/g)).toHaveLength(2)
    const broken = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'
    for (const text of ['hello', broken])
      expect(() => readCertificates('x', write('bad.pem', text))).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }))
    const nowhere = join(folder, 'nowhere.pem')
    expect(() => readCertificates('x', nowhere)).toThrow(expect.objectContaining({ code: 'CONFIG_UNREADABLE' }))
  })
})

describe('certificate, key and CA', () => {
  it('are read together', () => {
    expect(readTlsFiles(files, NAMES)).toEqual({ ca: CA.trim(), cert: CLIENT.trim(), key: CLIENT_KEY.trim() })
    expect(readTlsFiles({ ...files, key: encrypted, passphrase: 'hush' }, NAMES).passphrase).toBe('hush')
    expect(readTlsFiles({}, NAMES)).toEqual({})
  })

  it.each([
    ['a key that is another one', { key: write('other.key', SERVER_KEY) }, /^x\.key: .*other\.key is not the key of .* x\.cert/],
    ['no key at all', { key: files.cert }, /^x\.key: .*me\.pem holds no private key in PEM/],
    ['a key that is damaged', { key: write('cut.key', CLIENT_KEY.replace(/MIGH.{20}/, '')) }, /^x\.key: .*cut\.key can not be read/],
    ['a key without its passphrase', { key: encrypted }, /^x\.key: .* is encrypted: .* x\.passphrase/],
    ['a wrong passphrase', { key: encrypted, passphrase: 'wrong' }, /can not be read with the passphrase of x\.passphrase/],
    ['a certificate that is a key', { cert: files.key }, /^x\.cert: .*me\.key holds no certificate/],
    ['a folder', { ca: folder }, /^x\.ca: .* can not be read: EISDIR/],
  ])('are refused by the name of the option, and nothing of a key is said: %s', (_, changed, message) => {
    const failed = (): unknown => {
      try {
        return readTlsFiles({ ...files, ...changed }, NAMES)
      } catch (error) {
        return error
      }
    }
    const error = failed() as Error & { code: string }
    expect(error.message).toMatch(message)
    expect(error.code).toMatch(/^CONFIG_/)
    expect(error.message).not.toMatch(/wrong|MIGH|BEGIN/)
  })

  it.skipIf(process.getuid?.() === 0)('are refused where the user may not read them', () => {
    const path = write('secret.key', CLIENT_KEY)
    chmodSync(path, 0)
    expect(() => readTlsFiles({ ...files, key: path }, NAMES)).toThrow(/x\.key: .*secret\.key can not be read: EACCES/)
  })

  it('tell until when they are valid', () => {
    expect(certificateEnds(`${CLIENT_EXPIRED}\n${CA}`)).toEqual([Date.UTC(2021, 0, 1), Date.UTC(2126, 10, 6, 2, 43, 25)])
  })
})
