import type { Config } from '../config/options.ts'
import type { TlsMaterial, TlsNames } from '../kernel/tls-fault.ts'
import { certificateEndsAt, readTlsFiles } from '../machine/tls-files.ts'

const DAY_MS = 86_400_000
/** Long enough to have a certificate renewed by hand. */
const SOON_MS = 14 * DAY_MS

/** `kafka.tls` and `registry.tls` have the same options. */
type Section = 'kafka' | 'registry'

export function tlsNames(section: Section): TlsNames {
  const prefix = `${section}.tls` as const
  return { ca: `${prefix}.ca`, cert: `${prefix}.cert`, key: `${prefix}.key`, passphrase: `${prefix}.passphrase` }
}

/** Read anew at each call. Errors: CONFIG_INVALID, CONFIG_UNREADABLE. */
export function tlsOf(config: Config, section: Section): TlsMaterial {
  const prefix = `${section}.tls` as const
  const files = {
    ca: config[`${prefix}.ca`],
    cert: config[`${prefix}.cert`],
    key: config[`${prefix}.key`],
    passphrase: config[`${prefix}.passphrase`],
  }
  return readTlsFiles(files, tlsNames(section))
}

/**
 * What there is to say of our own certificates: a server says of one that is over no more than that it does not take it. Errors: as
 * `tlsOf`, for whatever could not be used.
 */
export function certificateFindings(config: Config, now: number): { readonly isOver: boolean; readonly text: string }[] {
  return (['kafka', 'registry'] as const).flatMap((section) => {
    const { cert } = tlsOf(config, section)
    const endsAt = cert === undefined ? Number.POSITIVE_INFINITY : certificateEndsAt(cert)
    if (endsAt - now > SOON_MS) return []
    const isOver = endsAt <= now
    const certificate = `the certificate ${config[`${section}.tls.cert`]} (${tlsNames(section).cert})`
    return [{ isOver, text: `${certificate} ${isOver ? 'was' : 'is'} valid until ${new Date(endsAt).toISOString()}` }]
  })
}
