import { type LookupAddress, lookup as systemLookup } from 'node:dns'
import { isIP } from 'node:net'
import { MillraceError } from '../kernel/errors.ts'
import { hostPattern } from '../kernel/host-pattern.ts'
import { compileHostGlob } from '../url/glob.ts'

/** All addresses of a host, as the system knows them. */
export type LookupAll = (hostname: string, callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void) => void

/** Takes a thread for as long as it waits. */
export const lookupBySystem: LookupAll = (hostname, callback) => systemLookup(hostname, { all: true, verbatim: true }, callback)

/**
 * A resolver behind what `fetch.resolve` says: hosts (or `*.example`) to addresses, like curl --resolve; the first pattern
 * that matches counts. Shape: at least one address, or an error; a name without any is ENOTFOUND.
 *
 * Errors: CONFIG_INVALID for a pattern that is no host, and for a value that is no address.
 */
export function createHostLookup(resolve: Readonly<Record<string, string>>, lookup: LookupAll = lookupBySystem): LookupAll {
  const overrides = Object.entries(resolve).map(([pattern, text]) => {
    if (hostPattern(pattern) === undefined) {
      throw new MillraceError(
        'CONFIG_INVALID',
        `fetch.resolve: ${JSON.stringify(pattern)} is no host; write it without scheme, port and path, like shop.example or *.example`,
      )
    }
    const address = text.trim().replace(/^\[|\]$/g, '')
    const family = isIP(address)
    if (family === 0) {
      throw new MillraceError(
        'CONFIG_INVALID',
        `fetch.resolve: ${JSON.stringify(text)}, given for ${pattern}, is no address; write 10.0.0.7 or fd00::7`,
      )
    }
    return { matches: compileHostGlob(pattern), found: { address, family } }
  })
  return (hostname, callback) => {
    const override = overrides.find(({ matches }) => matches(hostname))
    if (override !== undefined) return callback(null, [override.found])
    lookup(hostname, (error, addresses) => {
      if (error === null && addresses.length === 0) {
        callback(Object.assign(new Error(`${hostname} has no address`), { code: 'ENOTFOUND' }), [])
      } else callback(error, addresses)
    })
  }
}
