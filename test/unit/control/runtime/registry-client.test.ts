import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import type { Config } from '../../../../src/config/options.ts'
import { registryOf, watchedRegistry } from '../../../../src/control/runtime/registry-client.ts'
import { Outage } from '../../../../src/kernel/outage.ts'
import { recordingObserver } from '../../../support/kafka-fixture.ts'
import { ManualClock } from '../../../support/manual-clock.ts'

const configOf = (...sets: string[]): Config => loadConfig({ sets, flags: {}, environment: {} }).config

let server: Server | undefined
afterEach(() => server?.close())

async function gateway(status: number, type: string, body: string): Promise<NonNullable<ReturnType<typeof registryOf>>> {
  server = createServer((_request, response) => response.writeHead(status, { 'content-type': type, connection: 'close' }).end(body))
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve))
  const registry = registryOf(configOf(`registry.url=http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  if (registry === undefined) throw new Error('no registry')
  return registry
}

it.each([
  [401, 'REGISTRY_REFUSED'],
  [403, 'REGISTRY_REFUSED'],
  [502, 'REGISTRY_UNREACHABLE'],
  [200, 'REGISTRY_UNREACHABLE'],
])('a gateway before the registry that answers %i in HTML is taken at its status: %s', async (status, code) => {
  const registry = await gateway(status, 'text/html', '<html>nginx</html>')
  await expect(registry.schemaById(1)).rejects.toMatchObject({ code })
})

it('a gateway that refuses each request is not a registry without the schema', async () => {
  const registry = await gateway(400, 'text/html', '<html>The plain HTTP request was sent to HTTPS port</html>')
  await expect(registry.schemaById(1)).rejects.toMatchObject({ code: 'REGISTRY_REFUSED' })
})

it('an answer that is no JSON is told with its type', async () => {
  const registry = await gateway(200, 'text/html', '<html>Welcome</html>')
  await expect(registry.schemaById(1)).rejects.toThrow('status 200 with text/html in place of JSON')
})

it('a password with a percent sign of its own is refused by the name of the option, and not shown', () => {
  expect(() => registryOf({ ...configOf(), 'registry.url': 'http://user:hush%@host' })).toThrow(
    expect.objectContaining({ code: 'CONFIG_INVALID', message: expect.stringMatching(/^registry\.url (?!.*hush)/) }),
  )
})

it('a registry that readers ask while it is away is told so, until it has answered one of them', async () => {
  const { observer, events } = recordingObserver()
  const outage = new Outage('registry', { clock: new ManualClock(), observer })
  const away = watchedRegistry(await gateway(502, 'text/html', ''), outage)
  for (let time = 0; time < 2; time += 1) await expect(away.schemaById(1)).rejects.toMatchObject({ code: 'REGISTRY_UNREACHABLE' })
  expect(outage.isAway).toBe(true)
  server?.close()
  await watchedRegistry(await gateway(404, 'text/html', ''), outage).schemaById(1)
  expect(outage.isAway).toBe(false)
  expect(events.map(({ event }) => event)).toEqual(['RegistryPaused', 'RegistryResumed'])
})

it('a schema that is not there is none, in whatever words that is said', async () => {
  expect(await (await gateway(404, 'text/html', '<html>Not Found</html>')).schemaById(1)).toBeUndefined()
})
