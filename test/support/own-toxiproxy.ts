import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { choosePort } from '../../src/embedded/ports.ts'
import { eventually } from './eventually.ts'

/** Where toxiproxy's server is: TOXIPROXY, else the PATH. Shape: undefined where it is not installed. */
export function findToxiproxy(): string | undefined {
  const candidates = [process.env.TOXIPROXY, 'toxiproxy-server'].filter((name) => name !== undefined && name !== '')
  return candidates.find((name) => spawnSync(name as string, ['--version']).status === 0)
}

export const HOW_TO_INSTALL = 'toxiproxy: go install github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0, and its path as TOXIPROXY'

/** What is done to the bytes between the two ends of a proxy. */
export type Toxic =
  /** Connections are reset, ms after they were opened or the toxic was set. */
  | { readonly type: 'reset_peer'; readonly afterMs: number }
  | { readonly type: 'latency'; readonly ms: number }
  /** Nothing comes through and nothing is closed. */
  | { readonly type: 'black-hole' }

/** Toxiproxy of one test: proxies whose connections may be slow, silent or reset. Driven by its HTTP API. */
export class OwnToxiproxy {
  readonly #api: string
  readonly #child: ChildProcess

  private constructor(api: string, child: ChildProcess) {
    this.#api = api
    this.#child = child
  }

  static async start(command: string): Promise<OwnToxiproxy> {
    const port = await choosePort()
    const child = spawn(command, ['-host', '127.0.0.1', '-port', String(port)], { stdio: 'ignore' })
    await once(child, 'spawn')
    const api = `http://127.0.0.1:${port}`
    await eventually(async () => (await fetch(`${api}/version`)).ok, { what: 'toxiproxy' })
    return new OwnToxiproxy(api, child)
  }

  /** A proxy on 127.0.0.1. Shape: its port; `listen` where it has to be a certain one. */
  async add(name: string, upstreamPort: number, listen?: number): Promise<number> {
    const port = listen ?? (await choosePort())
    await this.#call('POST', '/proxies', { name, listen: `127.0.0.1:${port}`, upstream: `127.0.0.1:${upstreamPort}`, enabled: true })
    return port
  }

  async remove(name: string): Promise<void> {
    await this.#call('DELETE', `/proxies/${name}`)
  }

  /** From now on, for connections that are open as well. */
  async poison(proxy: string, toxic: Toxic): Promise<void> {
    for (const stream of ['upstream', 'downstream'] as const) {
      const [type, attributes] = attributesOf(toxic)
      await this.#call('POST', `/proxies/${proxy}/toxics`, { name: `${toxic.type}-${stream}`, type, stream, attributes })
    }
  }

  /** All proxies as if nothing had been. */
  async heal(): Promise<void> {
    await this.#call('POST', '/reset')
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }

  async #call(method: string, path: string, body?: unknown): Promise<void> {
    const response = await fetch(`${this.#api}${path}`, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
    if (!response.ok) throw new Error(`toxiproxy ${method} ${path}: ${response.status} ${await response.text()}`)
  }
}

function attributesOf(toxic: Toxic): [string, object] {
  switch (toxic.type) {
    case 'reset_peer':
      return ['reset_peer', { timeout: toxic.afterMs }]
    case 'latency':
      return ['latency', { latency: toxic.ms }]
    case 'black-hole':
      return ['timeout', { timeout: 0 }]
  }
}
