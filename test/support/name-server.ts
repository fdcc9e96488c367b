import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'

const TYPE = { 1: 'A', 28: 'AAAA' } as const
const NOT_FOUND = 3

export interface NameRecords {
  readonly A?: string
  /** Eight groups in full. */
  readonly AAAA?: string
}

/** A name server on the loopback: it knows what it is told, is silent about some names, and has never heard of the others. */
export class NameServer {
  readonly #socket: Socket
  readonly #records: Readonly<Record<string, NameRecords | 'silent'>>
  /** `A shop.test`, in the order in which they came. */
  readonly asked: string[] = []

  private constructor(socket: Socket, records: Readonly<Record<string, NameRecords | 'silent'>>) {
    this.#socket = socket
    this.#records = records
    socket.on('message', (query, from) => this.#answer(query, from))
  }

  static async start(records: Readonly<Record<string, NameRecords | 'silent'>>): Promise<NameServer> {
    const socket = createSocket('udp4')
    socket.bind(0, '127.0.0.1')
    await once(socket, 'listening')
    return new NameServer(socket, records)
  }

  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`
  }

  stop(): void {
    this.#socket.close()
  }

  #answer(query: Buffer, from: RemoteInfo): void {
    const labels: string[] = []
    let at = 12
    for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
      labels.push(query.toString('latin1', at + 1, at + 1 + length))
      at += length + 1
    }
    const question = query.subarray(12, at + 5)
    const type = TYPE[query.readUInt16BE(at + 1) as keyof typeof TYPE]
    const name = labels.join('.').toLowerCase()
    this.asked.push(`${type} ${name}`)
    const known = this.#records[name]
    if (known === 'silent') return
    const data = known === undefined ? undefined : dataOf(known, type)
    const header = Buffer.alloc(12)
    query.copy(header, 0, 0, 2)
    header.writeUInt16BE(0x8180 | (known === undefined ? NOT_FOUND : 0), 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(data === undefined ? 0 : 1, 6)
    this.#socket.send(Buffer.concat([header, question, ...(data === undefined ? [] : [record(question, data)])]), from.port, from.address)
  }
}

function dataOf(records: NameRecords, type: 'A' | 'AAAA' | undefined): Buffer | undefined {
  const text = type === undefined ? undefined : records[type]
  if (text === undefined) return undefined
  return type === 'A'
    ? Buffer.from(text.split('.').map(Number))
    : Buffer.from(
        text
          .split(':')
          .map((group) => group.padStart(4, '0'))
          .join(''),
        'hex',
      )
}

/** The name is a pointer to that of the question. Source: RFC 1035, section 4.1.3. */
function record(question: Buffer, data: Buffer): Buffer {
  const fixed = Buffer.alloc(12)
  fixed.writeUInt16BE(0xc00c, 0)
  question.copy(fixed, 2, question.length - 4)
  fixed.writeUInt32BE(60, 6)
  fixed.writeUInt16BE(data.length, 10)
  return Buffer.concat([fixed, data])
}
