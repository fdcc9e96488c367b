import { causesOf } from './errors.ts'

/** What a connection by TLS is made with, all as PEM. Nothing: the usual CAs are trusted, and no certificate is shown. */
export interface TlsMaterial {
  /** Trusted in place of the usual ones. */
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly passphrase?: string
}

/** How the operator names what `TlsMaterial` is read from. */
export interface TlsNames {
  readonly ca: string
  readonly cert: string
  readonly key: string
  readonly passphrase: string
}

const UNTRUSTED = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'CERT_UNTRUSTED',
])

/** What a server says of the certificate that it was shown, or was not. */
const OURS = /alert ((?:bad|unsupported) certificate|certificate (?:revoked|expired|unknown|required)|unknown ca|access denied)/i

/** Where what answers is no TLS. */
const NO_TLS = /wrong version number|packet length too long/

/** A Kafka that speaks none at this port does, and so does a balancer, a firewall, or whoever has no room: nothing was said. */
const HUNG_UP = /before secure TLS connection was established/

/** What a server says before there was any talk of certificates, as OpenSSL tells it; others use the same words. */
const REFUSED = /SSL routines:.*(unrecognized name|handshake failure|protocol version)/i

/**
 * Why a connection by TLS was not made, for the operator, with what to do; undefined where it failed for another reason. Total. The codes
 * are those of Node.js, which its callers keep on the error or below it.
 */
export function tlsFault(error: unknown, material: TlsMaterial, names: TlsNames): string | undefined {
  // Whoever made the connection wraps what happened, some into aggregates.
  for (const each of causesOf(error)) {
    const { code, message } = told(each)
    if (UNTRUSTED.has(code)) {
      const todo = material.ca === undefined ? `name the file of its CA in ${names.ca}` : `that CA is not in the file of ${names.ca}`
      return `its certificate is signed by no CA that is trusted (${message}): ${todo}`
    }
    if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID')
      return `${message}: that of the server, or of its CA; where it has not, look at the clock of this machine`
    if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `${message}: ask it by a name that its certificate has`
    const [, alert] = OURS.exec(message) ?? []
    if (alert !== undefined && material.cert === undefined)
      return `it asks for a certificate (alert ${alert}): set ${names.cert} and ${names.key}`
    if (alert !== undefined)
      return `it does not take the certificate of ${names.cert} (alert ${alert}): look whether that is still valid, and signed by a CA that the server trusts`
    if (NO_TLS.test(message)) return 'it speaks no TLS at this port'
    if (HUNG_UP.test(message))
      return 'it hung up before TLS was agreed on: does it speak TLS at this port, and with this machine, by this name?'
    const [, refusal] = REFUSED.exec(message) ?? []
    if (refusal !== undefined) return `it refuses to speak TLS with us (alert ${refusal}): ${refusalHint(refusal, material, names)}`
  }
  return undefined
}

function refusalHint(refusal: string, material: TlsMaterial, names: TlsNames): string {
  if (/name/i.test(refusal)) return 'ask it by a name that it knows'
  const versions = 'it takes neither TLS 1.2 nor 1.3'
  if (/version/i.test(refusal)) return versions
  const certificate =
    material.cert === undefined ? `it wants a certificate (${names.cert} and ${names.key})` : `another than ${names.cert} names`
  return `no cipher in common, ${versions}, or ${certificate}`
}

function told(error: unknown): { readonly code: string; readonly message: string } {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown }
  return { code: String(code ?? ''), message: typeof message === 'string' ? message.replace(/^Connection error: /, '') : '' }
}
