import ipaddr from 'ipaddr.js'
import { MillraceError } from '../kernel/errors.ts'

/** Says of an address whether it may be asked: undefined, or the name of the range that it lies in. */
export type AddressPolicy = (address: string) => string | undefined

/**
 * Only public addresses are asked, and those that the operator allows. What carries an IPv4 address inside (mapped, NAT64, 6to4,
 * Teredo) is refused whole, since what answers behind it can't be known; mapped ones are judged by the address that they mean.
 * Source: the special-purpose registries of IANA (RFC 6890 and successors), as ipaddr.js names their ranges.
 *
 * Errors: CONFIG_INVALID for an allowed range that is no CIDR.
 */
export function createAddressPolicy(allowed: readonly string[]): AddressPolicy {
  const ranges = allowed.map(parseRange)
  return (address) => {
    if (!ipaddr.isValid(address)) return 'invalid'
    const parsed = ipaddr.process(address)
    if (ranges.some(([base, bits]) => base.kind() === parsed.kind() && parsed.match(base, bits))) return undefined
    const range = parsed.range()
    return range === 'unicast' ? undefined : range
  }
}

function parseRange(text: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  try {
    if (text.includes('/')) return ipaddr.parseCIDR(text)
    const address = ipaddr.process(text)
    return [address, address.kind() === 'ipv4' ? 32 : 128]
  } catch (cause) {
    throw new MillraceError(
      'CONFIG_INVALID',
      `fetch.allowAddresses: ${JSON.stringify(text)} is no address range; write 127.0.0.0/8 or fd00::/8`,
      { cause },
    )
  }
}
