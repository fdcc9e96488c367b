import { createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { errorText, MillraceError } from '../kernel/errors.ts'
import type { TlsMaterial, TlsNames } from '../kernel/tls-fault.ts'

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g
const PRIVATE_KEY = /-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----[\s\S]*?-----END (?:[A-Z]+ )*PRIVATE KEY-----/

/** Paths, and the passphrase as it is. */
export interface TlsFiles {
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
  readonly passphrase?: string | undefined
}

/**
 * What a connection by TLS is made with, read and looked through before anybody is asked: a server that is shown nonsense says less of it.
 * Errors: CONFIG_UNREADABLE, CONFIG_INVALID, by the name of the option.
 */
export function readTlsFiles(files: TlsFiles, names: TlsNames): TlsMaterial {
  const { ca, cert, key, passphrase } = files
  const own = cert === undefined || key === undefined ? {} : ownCertificate({ cert, key, passphrase }, names)
  return { ...(ca === undefined ? {} : { ca: readCertificates(names.ca, ca) }), ...own }
}

/** Text of the certificates of a PEM file, one at least, in their order. Errors: CONFIG_UNREADABLE, CONFIG_INVALID. */
export function readCertificates(option: string, path: string): string {
  const found = read(option, path).match(CERTIFICATE) ?? []
  if (found.length === 0) throw new MillraceError('CONFIG_INVALID', `${option}: ${path} holds no certificate in PEM`)
  for (const [index, certificate] of found.entries()) {
    try {
      new X509Certificate(certificate)
    } catch (cause) {
      throw new MillraceError('CONFIG_INVALID', `${option}: certificate ${index + 1} of ${path} can not be read: ${errorText(cause)}`, {
        cause,
      })
    }
  }
  return found.join('\n')
}

/** Until when each certificate of a PEM text is valid, in their order; epoch ms. */
export function certificateEnds(pem: string): number[] {
  return (pem.match(CERTIFICATE) ?? []).map((certificate) => Date.parse(new X509Certificate(certificate).validTo))
}

function ownCertificate(
  { cert, key, passphrase }: { cert: string; key: string; passphrase: string | undefined },
  names: TlsNames,
): TlsMaterial {
  const chain = readCertificates(names.cert, cert)
  const [pem] = PRIVATE_KEY.exec(read(names.key, key)) ?? []
  const refused = (why: string, cause?: unknown): MillraceError =>
    new MillraceError('CONFIG_INVALID', `${names.key}: ${key} ${why}`, cause === undefined ? {} : { cause })
  if (pem === undefined) throw refused('holds no private key in PEM')
  const isEncrypted = /ENCRYPTED/.test(pem)
  if (isEncrypted && passphrase === undefined) throw refused(`is encrypted: its passphrase goes into ${names.passphrase}`)
  const opened = (): ReturnType<typeof createPrivateKey> => {
    try {
      return createPrivateKey(passphrase === undefined ? pem : { key: pem, passphrase })
    } catch (cause) {
      if (isEncrypted) throw refused(`can not be read with the passphrase of ${names.passphrase}: ${errorText(cause)}`, cause)
      throw refused(`can not be read: ${errorText(cause)}`, cause)
    }
  }
  if (!new X509Certificate(chain).checkPrivateKey(opened())) throw refused(`is not the key of the certificate of ${names.cert} (${cert})`)
  return { cert: chain, key: pem, ...(passphrase === undefined ? {} : { passphrase }) }
}

function read(option: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new MillraceError('CONFIG_UNREADABLE', `${option}: ${path} can not be read: ${errorText(cause)}`, { cause })
  }
}
