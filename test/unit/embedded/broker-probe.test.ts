import { createServer, type Server, type Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { metadataRequest, parseMetadata, probeBroker } from '../../../src/embedded/broker-probe.ts'
import { choosePort, isPortFree } from '../../../src/embedded/ports.ts'

/** A Metadata answer, version 8, as a broker sends it. */
function answer(options: { nodes: number[]; clusterId: string | undefined; controllerId: number }): Buffer {
  const parts: Buffer[] = []
  const int32 = (value: number) => {
    const buffer = Buffer.alloc(4)
    buffer.writeInt32BE(value)
    parts.push(buffer)
  }
  const text = (value: string | undefined) => {
    const length = Buffer.alloc(2)
    length.writeInt16BE(value === undefined ? -1 : value.length)
    parts.push(length, Buffer.from(value ?? ''))
  }
  int32(1) // correlation id
  int32(0) // throttle time
  int32(options.nodes.length)
  for (const node of options.nodes) {
    int32(node)
    text('127.0.0.1')
    int32(9092)
    text(undefined)
  }
  text(options.clusterId)
  int32(options.controllerId)
  int32(0) // topics
  int32(0) // authorized operations
  return Buffer.concat(parts)
}

const servers: Server[] = []
const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const server of servers.splice(0)) server.close()
})

async function listen(onConnection: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => socket.destroy())
    onConnection(socket)
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

const framed = (body: Buffer) => {
  const size = Buffer.alloc(4)
  size.writeInt32BE(body.length)
  return Buffer.concat([size, body])
}

describe('the question who a broker is', () => {
  it('is a Metadata request of version 8 whose length is right', () => {
    const request = metadataRequest()
    expect(request.readInt32BE(0)).toBe(request.length - 4)
    expect([request.readInt16BE(4), request.readInt16BE(6)]).toEqual([3, 8])
  })

  it('is answered by a registered node with its cluster', () => {
    expect(parseMetadata(answer({ nodes: [1], clusterId: 'abc', controllerId: 1 }))).toEqual({ clusterId: 'abc', registered: true })
  })

  it('shows a node that is not registered yet', () => {
    expect(parseMetadata(answer({ nodes: [], clusterId: 'abc', controllerId: -1 }))?.registered).toBe(false)
  })

  it('has no answer in bytes that end too soon or are none of it', () => {
    const whole = answer({ nodes: [1, 2], clusterId: 'abc', controllerId: 1 })
    for (let length = 0; length < whole.length - 8; length++) expect(parseMetadata(whole.subarray(0, length))).toBeUndefined()
    expect(parseMetadata(answer({ nodes: [1], clusterId: undefined, controllerId: 1 }))).toBeUndefined()
  })

  it('is asked over TCP, and takes an answer that comes byte by byte', async () => {
    const port = await listen((socket) => {
      socket.once('data', () => {
        for (const byte of framed(answer({ nodes: [1], clusterId: 'abc', controllerId: 1 }))) socket.write(Buffer.of(byte))
      })
    })
    expect(await probeBroker('127.0.0.1', port, 2000)).toEqual({ clusterId: 'abc', registered: true })
  })

  it.each([
    ['speaks another protocol', (socket: Socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['hangs up', (socket: Socket) => socket.end()],
    ['says nothing', () => undefined],
  ])('gets no answer from a program that %s', async (_, behave) => {
    const port = await listen(behave)
    expect(await probeBroker('127.0.0.1', port, 100)).toBeUndefined()
  })

  it('gets no answer where nothing listens', async () => {
    expect(await probeBroker('127.0.0.1', await choosePort(), 1000)).toBeUndefined()
  })
})

describe('a chosen port', () => {
  it('is free, and not among those that are taken', async () => {
    const port = await choosePort()
    expect(await isPortFree(port)).toBe(true)
    expect(port).toBeLessThan(32_768)
  })

  it('is seen as taken while another program listens on it', async () => {
    expect(await isPortFree(await listen(() => undefined))).toBe(false)
  })
})
