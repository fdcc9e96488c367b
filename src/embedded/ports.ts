import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/**
 * Ports are chosen below the range that operating systems give to outgoing connections (from 32768 on Linux, 49152 on macOS): the port
 * is kept over restarts, and one of that range could be lent to any connection while the broker is down.
 */
const FIRST_PORT = 20_000
const PORT_COUNT = 12_000

/** True when this host would let a server listen on 127.0.0.1 with this port. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen({ host: '127.0.0.1', port, exclusive: true }, () => server.close(() => resolve(true)))
  })
}

/** A free port that is not among `taken`. Errors: when a hundred tries found none. */
export async function choosePort(taken: readonly number[] = []): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = FIRST_PORT + randomInt(PORT_COUNT)
    if (!taken.includes(port) && (await isPortFree(port))) return port
  }
  throw new Error(`no free port found between ${FIRST_PORT} and ${FIRST_PORT + PORT_COUNT} on 127.0.0.1 in 100 tries`)
}
