import { MillraceError } from '../../kernel/errors.ts'
import { ownAddresses } from '../../machine/own-addresses.ts'
import type { Runtime } from '../runtime/runtime.ts'

/**
 * State in the data folder is right for one machine: two hosts of one group would each keep a pace of their own. To be asked once we are a
 * member, since nobody else can say how the brokers see us, and before anything is asked of a site.
 * Errors: CONFIG_INVALID.
 */
export async function refuseSplitState(
  { config, isEmbedded, admin }: Pick<Runtime, 'config' | 'isEmbedded'> & { readonly admin: Pick<Runtime['admin'], 'describeGroup'> },
  groupId: string,
  own: ReadonlySet<string> = ownAddresses(),
): Promise<void> {
  if (config.redis !== undefined || isEmbedded) return
  const { members } = await admin.describeGroup(groupId)
  const hosts = hostsOf(
    members.map(({ host }) => host),
    own,
  )
  if (hosts.length < 2) return
  throw new MillraceError(
    'CONFIG_INVALID',
    `group ${groupId} has members on ${hosts.join(' and ')}, and no redis is set: pace, dedup and limits would be kept twice. Set redis on all of them`,
  )
}

const THIS_MACHINE = 'this machine'

/** Shape: each host once, this machine as such: it is seen by one address or another, of either family. */
export function hostsOf(addresses: readonly string[], own: ReadonlySet<string>): string[] {
  const ours = new Set([...own].map(plain))
  return [...new Set(addresses.map((address) => (ours.has(plain(address)) ? THIS_MACHINE : plain(address))))]
}

/** One way of writing an address: brokers write all the zeros of one of IPv6. */
function plain(address: string): string {
  const bare = address
    .toLowerCase()
    .replace(/%.*$/, '')
    .replace(/^::ffff:(?=\d+\.)/, '')
  return bare.includes(':') && URL.canParse(`http://[${bare}]`) ? new URL(`http://[${bare}]`).hostname.slice(1, -1) : bare
}
