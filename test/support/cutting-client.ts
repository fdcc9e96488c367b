import net from 'node:net'
import tls from 'node:tls'
import type { ISocketFactory } from 'kafkajs'
import { createCluster, createKafkaClient, type KafkaClient } from '../../src/kafka/client.ts'
import { silentObserver } from '../../src/kernel/observe.ts'
import { brokers } from './services.ts'

/** A client whose connections a test can break. */
export interface CuttingClient {
  readonly client: KafkaClient
  /** Breaks all connections that are open now. Shape: how many. */
  cutAll(): number
  /** From now on the n-th next chunk from the broker is not delivered: its connection breaks instead. The request was done. */
  loseAnswer(nth: number): void
  /** Connections that were opened so far. */
  readonly openedCount: number
}

/**
 * A real client over sockets that can be cut: kafkajs is given its socket factory. What the broker did before the cut stays done,
 * which is the case that loses or repeats messages.
 */
export function cuttingClient(): CuttingClient {
  const base = createKafkaClient({ brokers: brokers(), clientId: 'cutting' }, silentObserver)
  const sockets = new Set<net.Socket>()
  let openedCount = 0
  let answersUntilLoss = Number.POSITIVE_INFINITY

  const socketFactory: ISocketFactory = ({ host, port, ssl, onConnect }) => {
    const socket = ssl ? tls.connect({ host, port, ...ssl }, onConnect) : net.connect({ host, port }, onConnect)
    openedCount += 1
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    const emit = socket.emit.bind(socket)
    socket.emit = (event: string | symbol, ...args: unknown[]): boolean => {
      if (event === 'data') {
        answersUntilLoss -= 1
        if (answersUntilLoss === 0) {
          answersUntilLoss = Number.POSITIVE_INFINITY
          cut(socket)
          return false
        }
      }
      return (emit as (event: string | symbol, ...args: unknown[]) => boolean)(event, ...args)
    }
    return socket
  }
  const kafka = new base.kafkajs.Kafka({
    brokers: brokers(),
    clientId: 'cutting',
    socketFactory,
    connectionTimeout: 3_000,
    retry: { initialRetryTime: 50, maxRetryTime: 500, retries: 8 },
    logLevel: base.kafkajs.logLevel.NOTHING,
  })
  return {
    client: {
      ...base,
      kafka,
      openCluster: async (options) => {
        const cluster = createCluster(kafka, options)
        await cluster.connect()
        return cluster
      },
    },
    cutAll: () => {
      const count = sockets.size
      for (const socket of sockets) cut(socket)
      return count
    },
    loseAnswer: (nth) => {
      answersUntilLoss = nth
    },
    get openedCount() {
      return openedCount
    },
  }
}

/** As a reset by the peer looks to whoever uses the socket. */
function cut(socket: net.Socket): void {
  socket.destroy(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }))
}
