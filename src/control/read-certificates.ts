import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { errorText, MillraceError } from '../kernel/errors.ts'

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g

/** Text of a PEM file that holds one certificate at least. Errors: CONFIG_UNREADABLE, CONFIG_INVALID. */
export async function readCertificates(path: string): Promise<string> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (cause) {
    throw new MillraceError('CONFIG_UNREADABLE', `fetch.tls.ca: ${path} can not be read: ${errorText(cause)}`, { cause })
  }
  const found = text.match(CERTIFICATE) ?? []
  if (found.length === 0) throw new MillraceError('CONFIG_INVALID', `fetch.tls.ca: ${path} holds no certificate in PEM`)
  for (const [index, certificate] of found.entries()) {
    try {
      new X509Certificate(certificate)
    } catch (cause) {
      throw new MillraceError('CONFIG_INVALID', `fetch.tls.ca: certificate ${index + 1} of ${path} can not be read: ${errorText(cause)}`, {
        cause,
      })
    }
  }
  return found.join('\n')
}
