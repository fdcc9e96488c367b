/**
 * Configuration of the embedded broker: one node that is broker and controller, small internal topics and short timeouts, so that it is
 * up in about two seconds and back soon after a kill.
 */

const MIB = 1024 * 1024

export interface BrokerPorts {
  readonly port: number
  readonly controllerPort: number
}

/**
 * The properties, by name. `bindHost` is where the broker listens; clients are always told 127.0.0.1 (a container listens on all of its
 * own addresses and only the loopback port of the host leads there).
 */
export function brokerProperties(ports: BrokerPorts, bindHost = '127.0.0.1', logDirs = 'data'): Readonly<Record<string, string>> {
  return {
    'process.roles': 'broker,controller',
    'node.id': '1',
    'controller.quorum.voters': `1@127.0.0.1:${ports.controllerPort}`,
    listeners: `PLAINTEXT://${bindHost}:${ports.port},CONTROLLER://127.0.0.1:${ports.controllerPort}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${ports.port}`,
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': 'PLAINTEXT',
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    // Relative to the working folder of the process: Kafka would split an absolute path at its commas.
    'log.dirs': logDirs,
    'auto.create.topics.enable': 'false',

    // Internal topics: each partition costs time at the first use of a coordinator.
    'offsets.topic.num.partitions': '4',
    'offsets.topic.replication.factor': '1',
    'transaction.state.log.num.partitions': '4',
    'transaction.state.log.replication.factor': '1',
    'transaction.state.log.min.isr': '1',
    'share.coordinator.state.topic.num.partitions': '1',
    'share.coordinator.state.topic.replication.factor': '1',
    'share.coordinator.state.topic.min.isr': '1',

    // A committed offset must never expire before the log it points into.
    'offsets.retention.minutes': '2147483647',
    'group.initial.rebalance.delay.ms': '0',
    'group.min.session.timeout.ms': '500',

    // The broker is in service one heartbeat after its start. Its session is as long as Kafka's own default: one that a busy machine
    // keeps from its heartbeats would lose the lead of its partitions, and with it what transactions are about to commit.
    'broker.heartbeat.interval.ms': '200',
    // One that resigns before it ends drops what transactions are about to commit; what is left to do is former-registration.ts.
    'controlled.shutdown.enable': 'false',
    // A transaction whose producer died holds up every reader of committed messages.
    'transaction.abort.timed.out.transaction.cleanup.interval.ms': '500',

    // Pages of 10 MiB and their envelope; the topics set their own limit below this one.
    'message.max.bytes': String(16 * MIB),
    'replica.fetch.max.bytes': String(16 * MIB),
    'socket.request.max.bytes': String(100 * MIB),
    'log.retention.check.interval.ms': '30000',

    // The heap is 384 MiB at most; the default for this buffer alone is 128.
    'log.cleaner.dedupe.buffer.size': String(16 * MIB),
    'num.network.threads': '2',
    'num.io.threads': '4',
    'background.threads': '2',
  }
}

/** Of the controller alone, for the moment in which it fences a broker that has ended (former-registration.ts). */
export function fencingProperties(properties: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const { 'advertised.listeners': _, 'inter.broker.listener.name': __, listeners = '', ...shared } = properties
  return {
    ...shared,
    'process.roles': 'controller',
    listeners: listeners
      .split(',')
      .filter((listener) => listener.startsWith('CONTROLLER:'))
      .join(','),
    'broker.session.timeout.ms': '100',
    'broker.heartbeat.interval.ms': '50',
    // What it has written stands behind the next of its own records.
    'metadata.max.idle.interval.ms': '20',
  }
}

/** Text of a Java properties file: Kafka reads it as ISO 8859-1, so everything beyond ASCII is escaped. */
export function renderProperties(properties: Readonly<Record<string, string>>): string {
  return Object.entries(properties)
    .map(([name, value]) => `${escapeText(name, true)}=${escapeText(value, false)}\n`)
    .join('')
}

/** Value by name of a Java properties file as Kafka writes them (meta.properties): no line continuations. */
export function parseProperties(text: string): Record<string, string> {
  const properties: Record<string, string> = {}
  for (const line of text.split('\n')) {
    const match = /^\s*([^#!\s=:][^=:\s]*)\s*[=:]\s*(.*?)\s*$/.exec(line)
    if (match?.[1] !== undefined && match[2] !== undefined) properties[match[1]] = match[2]
  }
  return properties
}

function escapeText(text: string, isName: boolean): string {
  let escaped = ''
  for (const unit of text.split('')) {
    if (unit === '\\' || (isName && /[ :=]/.test(unit))) escaped += `\\${unit}`
    else if (/[ -~]/.test(unit)) escaped += unit
    else escaped += `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  }
  return escaped.startsWith(' ') ? `\\${escaped}` : escaped
}
