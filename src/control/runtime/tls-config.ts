import type { Config } from '../../config/options.ts'
import type { TlsMaterial, TlsNames } from '../../kernel/tls-fault.ts'
import { certificateEnds, readCertificates, readTlsFiles, type TlsFiles } from '../../machine/tls-files.ts'
import { parseRedisUrl, REDIS_TLS_NAMES } from '../../state/redis/redis-url.ts'

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
  return readTlsFiles(tlsFiles(config, section), tlsNames(section))
}

function tlsFiles(config: Config, section: Section): TlsFiles {
  const prefix = `${section}.tls` as const
  return {
    ca: config[`${prefix}.ca`],
    cert: config[`${prefix}.cert`],
    key: config[`${prefix}.key`],
    passphrase: config[`${prefix}.passphrase`],
  }
}

/**
 * What there is to say of the certificates that we show and trust: of one that is over a server says no more than that it does not take it.
 * Of a chain that is shown each certificate counts; of those that are trusted the one that ends last, since a file may hold the next CA
 * already.
 * Errors: CONFIG_INVALID, CONFIG_UNREADABLE, for whatever could not be used.
 */
export function certificateFindings(config: Config, now: number): { readonly isOver: boolean; readonly text: string }[] {
  return certificateFiles(config).flatMap(({ what, option, path, endsAt }) => {
    if (endsAt - now > SOON_MS) return []
    const isOver = endsAt <= now
    return [{ isOver, text: `the ${what} ${path} (${option}) ${isOver ? 'was' : 'is'} valid until ${new Date(endsAt).toISOString()}` }]
  })
}

interface CertificateFile {
  readonly what: 'certificate' | 'CA'
  readonly option: string
  readonly path: string
  /** Epoch ms. */
  readonly endsAt: number
}

function certificateFiles(config: Config): CertificateFile[] {
  const redis = config.redis === undefined ? {} : parseRedisUrl(config.redis).files
  const sitesCa = config['fetch.tls.ca']
  return [
    ...filesOf(tlsFiles(config, 'kafka'), tlsNames('kafka')),
    ...filesOf(tlsFiles(config, 'registry'), tlsNames('registry')),
    ...filesOf(redis, REDIS_TLS_NAMES),
    ...(sitesCa === undefined ? [] : [trusted('fetch.tls.ca', sitesCa, readCertificates('fetch.tls.ca', sitesCa))]),
  ]
}

function filesOf(files: TlsFiles, names: TlsNames): CertificateFile[] {
  const { ca, cert } = readTlsFiles(files, names)
  return [
    ...(cert === undefined
      ? []
      : [{ what: 'certificate' as const, option: names.cert, path: files.cert ?? '', endsAt: Math.min(...certificateEnds(cert)) }]),
    ...(ca === undefined ? [] : [trusted(names.ca, files.ca ?? '', ca)]),
  ]
}

function trusted(option: string, path: string, pem: string): CertificateFile {
  return { what: 'CA', option, path, endsAt: Math.max(...certificateEnds(pem)) }
}
