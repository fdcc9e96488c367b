import type { TlsMaterial, TlsNames } from '../kernel/tls-fault.ts'

/** How to reach a Kafka. */
export interface KafkaConnection {
  /** `host:port` each; any of them is enough to find the others. */
  readonly brokers: readonly string[]
  readonly clientId: string
  /** Undefined: without TLS. */
  readonly tls?: { readonly material: TlsMaterial; readonly names: TlsNames }
  readonly sasl?: {
    readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
    readonly username: string
    readonly password: string
  }
  /** For one connection, TLS and login apart. 5 s where not given. */
  readonly connectionTimeoutMs?: number
  /** For one request; 30 s where not given. */
  readonly requestTimeoutMs?: number
}
