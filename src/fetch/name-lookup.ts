import { promises as dns, type LookupAddress } from 'node:dns'
import { readFileSync } from 'node:fs'
import type { Clock } from '../kernel/clock.ts'
import { RecentMap } from '../kernel/recent-map.ts'
import { type LookupAll, lookupBySystem } from './resolve.ts'

export interface NameLookupOptions {
  readonly clock: Clock
  /** For tests: name servers as `address:port`, whenever they are read. Those of the system where not given. */
  readonly servers?: () => readonly string[]
  /** For tests; what the operating system knows where not given. */
  readonly system?: LookupAll
  /** For tests; names of the hosts file where not given. */
  readonly hosts?: ReadonlySet<string>
}

/** An address is good for so long, whatever its record says: a site has many connections to make. */
const KEPT_MS = 60_000
const NAMES_KEPT = 5_000
/** Addresses of one family that a name is taken to have: an answer holds up to 4,000, and the ninth is not tried where eight are dead. */
const MAX_OF_FAMILY = 8
/** Of one try of one name server; a second round waits twice as long. */
const TRY_MS = 2_500
const TRIES = 2
/** For all tries of all name servers. */
const LOOKUP_MS = 10_000
/** Which name servers there are is read so often: a machine may change its network. */
const SERVERS_KEPT_MS = 60_000
/** How long the addresses of one family wait for those of the other. Source: RFC 8305, section 3. */
const OTHER_FAMILY_MS = 50
/** Names that name servers of the internet have nothing to say about. Source: RFC 6761, RFC 6762. */
const LOCAL = /(?:^|\.)(?:localhost|local|internal|home\.arpa)$/

/**
 * Addresses of hosts, asked of the name servers themselves. The operating system's own look-up takes a thread for as long as it waits,
 * of which Node.js has two: two sites whose name servers are dead would hold up the connections to all others. It is asked all the same
 * for what is not a matter of name servers (the hosts file, local names) and for names that these do not know, which may be those of
 * a search domain or of a private network.
 *
 * Shape: IPv4 before IPv6, a few of each: nobody sees the others, so that what is judged is what is connected to. Errors: ENOTFOUND; the
 * resolver's code where name servers fail. Failures are not remembered.
 */
export function createNameLookup(options: NameLookupOptions): LookupAll {
  const { clock, system = lookupBySystem, hosts = namesOfHostsFile() } = options
  let resolver = newResolver(options.servers)
  let readMono = clock.mono()
  const known = new RecentMap<string, { readonly addresses: LookupAddress[]; readonly untilMono: number }>(NAMES_KEPT)
  const open = new Map<string, Promise<LookupAddress[]>>()

  const bySystem = (hostname: string): Promise<LookupAddress[]> =>
    new Promise((resolve, reject) => {
      system(hostname, (error, addresses) => (error === null ? resolve(addresses) : reject(error)))
    })

  async function ask(hostname: string): Promise<LookupAddress[]> {
    const name = hostname.toLowerCase().replace(/\.$/, '')
    if (!name.includes('.') || LOCAL.test(name) || hosts.has(name)) return bySystem(hostname)
    if (clock.mono() - readMono > SERVERS_KEPT_MS) {
      resolver = newResolver(options.servers)
      readMono = clock.mono()
    }
    const failure = Object.assign(new Error(`no name server answered for ${name}`), { code: 'ETIMEOUT' })
    const late = deadline(LOOKUP_MS, { addresses: [], failure })
    const four = Promise.race([familyOf(resolver.resolve4(name), 4), late.over])
    const six = Promise.race([familyOf(resolver.resolve6(name), 6), late.over])
    try {
      return (await firstOf(four, six)) ?? (await bySystem(hostname))
    } finally {
      late.disarm()
    }
  }

  /** Whichever has addresses first waits a moment for the other. Shape: undefined where name servers know nothing of the name. */
  async function firstOf(four: Promise<Family>, six: Promise<Family>): Promise<LookupAddress[] | undefined> {
    const first = await Promise.race([withAddresses(four), withAddresses(six), Promise.all([four, six]).then(() => undefined)])
    if (first !== undefined) {
      const moment = deadline(OTHER_FAMILY_MS, { addresses: [] })
      const both = await Promise.all([Promise.race([four, moment.over]), Promise.race([six, moment.over])])
      moment.disarm()
      return both.flatMap(({ addresses }) => addresses)
    }
    const failed = (await Promise.all([four, six])).find(({ failure }) => failure !== undefined && !isUnknown(failure))
    if (failed?.failure !== undefined) throw failed.failure
    return undefined
  }

  function deadline(ms: number, answer: Family): { readonly over: Promise<Family>; readonly disarm: () => void } {
    let disarm = (): void => undefined
    const over = new Promise<Family>((resolve) => {
      disarm = clock.timer(ms, () => resolve(answer))
    })
    return { over, disarm: () => disarm() }
  }

  return (hostname, callback) => {
    const found = known.get(hostname)
    if (found !== undefined && found.untilMono > clock.mono()) return callback(null, found.addresses)
    const asking =
      open.get(hostname) ??
      ask(hostname)
        .then(few)
        .finally(() => open.delete(hostname))
    open.set(hostname, asking)
    asking.then(
      (addresses) => {
        if (addresses.length > 0) known.set(hostname, { addresses, untilMono: clock.mono() + KEPT_MS })
        callback(null, addresses)
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    )
  }
}

function few(addresses: readonly LookupAddress[]): LookupAddress[] {
  const kept = new Set([4, 6].flatMap((family) => addresses.filter((each) => each.family === family).slice(0, MAX_OF_FAMILY)))
  return addresses.filter((each) => kept.has(each))
}

interface Family {
  readonly addresses: readonly LookupAddress[]
  readonly failure?: NodeJS.ErrnoException
}

/** Never rejects. */
async function familyOf(asked: Promise<string[]>, family: 4 | 6): Promise<Family> {
  try {
    return { addresses: (await asked).map((address) => ({ address, family })) }
  } catch (error) {
    return { addresses: [], failure: error as NodeJS.ErrnoException }
  }
}

/** Never resolves where there are none. */
function withAddresses(family: Promise<Family>): Promise<Family> {
  return new Promise((resolve) => {
    void family.then((answer) => {
      if (answer.addresses.length > 0) resolve(answer)
    })
  })
}

/** The name is not there, or is none, or nobody could be asked: a machine may have no name server that we know of. */
const UNKNOWN: ReadonlySet<string> = new Set(['ENOTFOUND', 'ENODATA', 'EBADNAME', 'ECONNREFUSED'])

function isUnknown({ code }: NodeJS.ErrnoException): boolean {
  return code !== undefined && UNKNOWN.has(code)
}

function newResolver(servers: NameLookupOptions['servers']): dns.Resolver {
  const resolver = new dns.Resolver({ timeout: TRY_MS, tries: TRIES })
  if (servers !== undefined) resolver.setServers(servers())
  return resolver
}

/** As it is at the start. */
function namesOfHostsFile(): ReadonlySet<string> {
  let text = ''
  try {
    text = readFileSync('/etc/hosts', 'utf8')
  } catch {
    // There is none on some systems, and what is not readable for us counts for nothing.
  }
  const names = text.split('\n').flatMap((line) => line.replace(/#.*/, '').trim().split(/\s+/).slice(1))
  return new Set(names.map((name) => name.toLowerCase()))
}
