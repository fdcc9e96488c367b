import ipaddr from 'ipaddr.js'
import { MillraceError } from '../kernel/errors.ts'

/** Says of an address whether it may be asked: undefined, or the name of the range that it lies in. */
export type AddressPolicy = (address: string) => string | undefined

/**
 * Only public addresses are asked, and those that the operator allows. An address that carries an IPv4 address inside is judged by
 * that one where the two are the same machine (mapped, NAT64), and refused where nobody can know (6to4, Teredo, the deprecated and
 * the local forms). Source: the special-purpose registries of IANA (RFC 6890 and successors), as ipaddr.js names their ranges.
 *
 * Errors: CONFIG_INVALID for an allowed range that is no CIDR.
 */
export function createAddressPolicy(allowed: readonly string[]): AddressPolicy {
  const ranges = allowed.map(parseRange)
  return (address) => {
    const text = withoutDots(address)
    if (!ipaddr.isValid(text)) return 'invalid'
    const given = ipaddr.process(text)
    const meant = behindNat64(given)
    const isAllowed = [given, meant].some((each) => ranges.some(([base, bits]) => base.kind() === each.kind() && each.match(base, bits)))
    return isAllowed ? undefined : rangeOf(meant)
  }
}

type Address = ipaddr.IPv4 | ipaddr.IPv6

const NAT64 = ipaddr.parseCIDR('64:ff9b::/96')
/** Of IPv6 only this is handed out for the public network (RFC 4291 section 2.4); `::127.0.0.1` lies outside. */
const GLOBAL_UNICAST = ipaddr.parseCIDR('2000::/3')
/** A public address that stands for the machine's own host: where Azure serves its agents. */
const HOST_SERVICES: ReadonlySet<string> = new Set(['168.63.129.16'])

function rangeOf(address: Address): string | undefined {
  const range = address.range()
  if (range !== 'unicast') return range
  if (address.kind() === 'ipv6' && !address.match(GLOBAL_UNICAST)) return 'reserved'
  return HOST_SERVICES.has(address.toString()) ? 'metadata' : undefined
}

/** ipaddr.js takes `::1.2.3.4` for `::ffff:1.2.3.4`, which is another address. */
function withoutDots(address: string): string {
  if (!address.includes(':') || !address.includes('.')) return address
  const url = `http://[${address}]/`
  return URL.canParse(url) ? new URL(url).hostname.slice(1, -1) : ''
}

/** Hosts with IPv6 alone see every IPv4 site under the well-known prefix of their gateway (RFC 6052). */
function behindNat64(address: Address): Address {
  return address.kind() === 'ipv6' && address.match(NAT64) ? ipaddr.fromByteArray(address.toByteArray().slice(12)) : address
}

function parseRange(text: string): [Address, number] {
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
