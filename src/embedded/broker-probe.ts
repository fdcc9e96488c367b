import { connect, type Socket } from 'node:net'

/**
 * Asks a broker over Kafka's own protocol who it is. A port that is open says little: a starting broker listens before it is
 * registered, and another program may have the port. Written by hand, since a client library would retry and log.
 */
export interface BrokerAnswer {
  readonly clusterId: string
  /** True once the controller has registered the node: it can take messages. */
  readonly registered: boolean
}

const METADATA = 3
/** The newest version without tagged fields; brokers from 0.11 to 4.x answer it with the cluster id. */
const METADATA_VERSION = 8
const MAX_ANSWER_BYTES = 1024 * 1024
const ANSWER_MS = 1_000

/** Shape: undefined when nothing answers in time, or what answers is no Kafka. Units: ms. Errors: none. */
export function probeBroker(host: string, port: number, timeoutMs: number): Promise<BrokerAnswer | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: timeoutMs })
    const done = (answer: BrokerAnswer | undefined): void => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('timeout', () => done(undefined))
    socket.once('error', () => done(undefined))
    socket.once('close', () => done(undefined))
    socket.once('connect', () => socket.write(metadataRequest()))
    readAnswer(socket, done)
  })
}

/** True where the broker of this cluster answers on this machine, and has been registered. */
export async function brokerAnswers({ port, clusterId }: { readonly port: number; readonly clusterId: string }): Promise<boolean> {
  const answer = await probeBroker('127.0.0.1', port, ANSWER_MS)
  return answer?.registered === true && answer.clusterId === clusterId
}

function readAnswer(socket: Socket, done: (answer: BrokerAnswer | undefined) => void): void {
  let received = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    if (received.length < 4) return
    const length = received.readInt32BE(0)
    if (length < 0 || length > MAX_ANSWER_BYTES) done(undefined)
    else if (received.length >= 4 + length) done(parseMetadata(received.subarray(4, 4 + length)))
  })
}

/** Metadata request for no topic at all. */
export function metadataRequest(): Buffer {
  const clientId = 'millrace-probe'
  const body = Buffer.alloc(2 + 2 + 4 + 2 + clientId.length + 4 + 3)
  let at = body.writeInt16BE(METADATA, 0)
  at = body.writeInt16BE(METADATA_VERSION, at)
  at = body.writeInt32BE(1, at) // correlation id
  at = body.writeInt16BE(clientId.length, at)
  at += body.write(clientId, at, 'latin1')
  body.writeInt32BE(0, at) // no topics; the three flags behind it stay false
  const size = Buffer.alloc(4)
  size.writeInt32BE(body.length, 0)
  return Buffer.concat([size, body])
}

/** Shape: undefined for bytes that are no Metadata answer of our version. */
export function parseMetadata(bytes: Buffer): BrokerAnswer | undefined {
  try {
    let at = 4 + 4 // correlation id, throttle time
    const readString = (): string | undefined => {
      const length = bytes.readInt16BE(at)
      at += 2
      if (length < 0) return undefined
      if (at + length > bytes.length) throw new RangeError('a string runs past the end of the answer')
      at += length
      return bytes.toString('utf8', at - length, at)
    }
    const brokers = bytes.readInt32BE(at)
    at += 4
    const nodeIds: number[] = []
    for (let index = 0; index < brokers; index++) {
      nodeIds.push(bytes.readInt32BE(at))
      at += 4
      readString() // host
      at += 4 // port
      readString() // rack
    }
    const clusterId = readString()
    const controllerId = bytes.readInt32BE(at)
    if (clusterId === undefined) return undefined
    return { clusterId, registered: nodeIds.includes(1) && controllerId >= 0 }
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}
