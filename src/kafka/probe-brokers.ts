import { unlessAborted } from '../kernel/abort.ts'
import { systemClock, within } from '../kernel/clock.ts'
import { causesOf, errorText, MillraceError } from '../kernel/errors.ts'
import { tlsFault } from '../kernel/tls-fault.ts'
import { type Cluster, clusterMetadata } from './cluster.ts'
import type { KafkaConnection } from './connection.ts'
import { kafkajsFailure } from './failure.ts'

interface Reachability {
  readonly connection: Pick<KafkaConnection, 'brokers' | 'tls' | 'sasl'>
  /** A cluster that knows this address alone and tries once. */
  readonly clusterAt: (address: string) => Cluster
  readonly timeoutMs: number
  readonly signal?: AbortSignal
}

/**
 * Tries all addresses at once; the first that answers as a Kafka, and that names a broker which can be reached in turn, is enough.
 * Errors: KAFKA_UNREACHABLE with every address and its reason; ABORTED.
 */
export async function verifyReachable({ connection, clusterAt, timeoutMs, signal }: Reachability): Promise<void> {
  const { brokers } = connection
  if (signal?.aborted) throw signal.reason
  const opened: Cluster[] = []
  const reasons = new Map(brokers.map((address) => [address, `no answer within ${timeoutMs} ms`]))
  const attempts = brokers.map(async (address) => {
    if (!/^[^:\s]+:\d{1,5}$/.test(address)) {
      reasons.set(address, 'is not of the form host:port')
      throw new Error('not an address')
    }
    const cluster = clusterAt(address)
    opened.push(cluster)
    try {
      await cluster.connect()
      reasons.set(address, `it answers, but none of the brokers that it names could be reached within ${timeoutMs} ms`)
      await reachAnyBroker(cluster, connection)
    } catch (error) {
      reasons.set(address, plainReason(error, connection))
      throw error
    }
  })
  const reached = Promise.any(attempts)
  try {
    const first = await within(systemClock, timeoutMs, signal === undefined ? reached : unlessAborted(signal, () => reached))
    if (first !== 'late') return
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    if (!(error instanceof AggregateError)) throw error
  } finally {
    // Nobody waits for the goodbyes: a peer that does not answer would hold up the answer to the user.
    for (const cluster of opened) cluster.disconnect().catch(() => undefined)
  }
  const tried = [...reasons].map(([address, reason]) => `${address}: ${reason}`).join('; ')
  throw new MillraceError('KAFKA_UNREACHABLE', `no Kafka broker could be reached (${tried || 'no address was given'})`, {
    context: { brokers: brokers.join(',') },
  })
}

/** The addresses that a cluster gives out can differ from the one that was asked, and they are the ones that everything uses. */
async function reachAnyBroker(cluster: Cluster, connection: Reachability['connection']): Promise<void> {
  const { brokers } = await clusterMetadata(cluster)
  await cluster.refreshMetadata()
  const failures: string[] = []
  for (const { nodeId, host, port } of brokers) {
    try {
      const broker = await cluster.findBroker({ nodeId })
      if (!broker.isConnected()) await broker.connect()
      return
    } catch (error) {
      failures.push(`${host}:${port} (${plainReason(error, connection)})`)
    }
  }
  throw new Error(`it answers, but none of the brokers that it names could be reached: ${failures.join(', ') || 'it names none'}`)
}

/** kafkajs wraps what went wrong into the story of its retries. */
function plainReason(error: unknown, { tls, sasl }: Reachability['connection']): string {
  const fault = tls === undefined ? undefined : tlsFault(error, tls.material, tls.names)
  if (fault !== undefined) return fault
  const inner = [...causesOf(error)].at(-1)
  const reason = errorText(inner).replace(/^Connection error: /, '')
  // A broker that is spoken to in another way than it listens hangs up and says nothing.
  if (kafkajsFailure(inner).name !== 'KafkaJSConnectionClosedError') return reason
  const missing = [...(tls === undefined ? ['TLS (kafka.ssl)'] : []), ...(sasl === undefined ? ['a login (kafka.sasl)'] : [])]
  return missing.length === 0 ? reason : `${reason}: it may want ${missing.join(' or ')}`
}
