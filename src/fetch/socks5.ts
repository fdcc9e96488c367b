import { isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'

/** SOCKS version 5 in bytes: RFC 1928, and user with password by RFC 1929. Pure. */

const VERSION = 5
export const METHOD = { none: 0, password: 2, refused: 0xff } as const

export function greeting(hasCredentials: boolean): Buffer {
  return Buffer.from(hasCredentials ? [VERSION, 2, METHOD.none, METHOD.password] : [VERSION, 1, METHOD.none])
}

/** Shape: user and password of 1 to 255 bytes each. */
export function passwordMessage({ username, password }: { readonly username: string; readonly password: string }): Buffer {
  const [user, word] = [Buffer.from(username), Buffer.from(password)]
  return Buffer.concat([Buffer.from([1, user.length]), user, Buffer.from([word.length]), word])
}

/** Asks for a connection to an address, never to a name: the proxy has nothing to resolve. */
export function connectMessage(address: string, port: number): Buffer {
  const bytes = Buffer.from(ipaddr.parse(address).toByteArray())
  const head = Buffer.from([VERSION, 1, 0, isIPv4(address) ? 1 : 4])
  const end = Buffer.alloc(2)
  end.writeUInt16BE(port)
  return Buffer.concat([head, bytes, end])
}

/** Bytes of the bound address that follow the first five of a reply; undefined: no such kind of address. */
export function restOfReply(firstFive: Buffer): number | undefined {
  switch (firstFive[3]) {
    case 1:
      return 4 - 1 + 2
    case 4:
      return 16 - 1 + 2
    case 3:
      // The fifth byte is the length of a name.
      return (firstFive[4] ?? 0) + 2
    default:
      return undefined
  }
}

export type ReplyMeaning =
  | { readonly kind: 'connected' }
  /** The proxy works, and the target can't be reached through it. */
  | { readonly kind: 'unreachable'; readonly text: string }
  /** The proxy does not want to. */
  | { readonly kind: 'refused'; readonly text: string }
  /** The proxy can't, and does not say by whose fault. */
  | { readonly kind: 'failed'; readonly text: string }

const REPLIES: readonly (readonly [ReplyMeaning['kind'], string])[] = [
  ['connected', ''],
  ['failed', 'general failure'],
  ['refused', 'not allowed by its rules'],
  ['unreachable', 'network unreachable'],
  ['unreachable', 'host unreachable'],
  ['unreachable', 'connection refused'],
  ['unreachable', 'TTL expired'],
  ['refused', 'command not supported'],
  ['refused', 'kind of address not supported'],
]

export function meaningOf(reply: number): ReplyMeaning {
  const [kind, text] = REPLIES[reply] ?? ['refused', 'unknown reply']
  return kind === 'connected' ? { kind } : { kind, text: `SOCKS reply ${reply}, ${text}` }
}
