import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Deployment } from '../support/deployment.ts'
import { eventually } from '../support/eventually.ts'
import { TestSite } from '../support/fetch-fixture.ts'
import { storeSets } from '../support/services.ts'

/** `crawls` beside a fetch process that runs, as an operator types it. */
describe.each(['lmdb', 'redis'] as const)('millrace crawls, with the state in %s', (store) => {
  let deployment: Deployment
  const site = new TestSite((_, response) => response.setHeader('content-type', 'text/html').end('<a href="/linked">linked</a>'))
  const askedSince = (mono: number, host: string) =>
    site.requests.filter(({ startedAt, host: asked }) => startedAt > mono && asked.startsWith(host)).length
  const endings = async () =>
    (await deployment.outcomes()).map(
      ({ value: { kind, reason, url } }) => `${new URL(url).hostname}${new URL(url).pathname} ${kind} ${reason}`,
    )
  const produce = async (host: string, crawl: string, count: number) => {
    const urls = Array.from({ length: count }, (_, index) => site.url(host, `/${index}`)).join('\n')
    return deployment.run(['produce', '--crawl', crawl, '--max-depth', '1', '--file', '-'], urls)
  }

  beforeAll(async () => {
    await site.open()
    deployment = await Deployment.open({ set: ['fetch.robots=ignore', 'politeness.default.ratePerSecond=2', ...storeSets(store)] })
  })
  afterAll(async () => {
    await deployment.close()
    await site.close()
  })

  it('stops one within two seconds while others go on, refuses what waits, and takes it again after a resume', async () => {
    expect((await produce('bad.example', 'bad', 40)).code).toBe(0)
    expect((await produce('good.example', 'good', 80)).code).toBe(0)
    const worker = deployment.start(['fetch'])
    await eventually(() => askedSince(0, 'bad.example') > 2 && askedSince(0, 'good.example') > 2, {
      what: 'requests of both crawls',
    })
    const stopped = await deployment.run(['crawls', 'stop', 'bad'])
    expect(stopped.code).toBe(0)
    expect(stopped.stdout).toMatch(/the crawl bad is stopped: .* URLs of it are open, and refused when read/)
    expect(stopped.stderr).toBe('')
    const quietFrom = performance.now() + 2_000
    await eventually(() => askedSince(quietFrom, 'good.example') > 4, { what: 'the other crawl to go on' })
    expect(askedSince(quietFrom, 'bad.example')).toBe(0)
    await eventually(async () => (await endings()).filter((text) => text.startsWith('bad.example')).length === 40, {
      what: 'an end for each URL of the crawl',
    })
    const refused = (await endings()).filter((text) => /^bad\.example.* REFUSED crawl-stopped$/.test(text))
    expect(refused.length).toBeGreaterThan(0)

    const into = await produce('bad.example', 'bad', 1)
    expect([into.code, into.stderr]).toEqual([2, expect.stringContaining('the crawl bad is stopped')])
    const going = await deployment.run(['run', '--crawl', 'bad'])
    expect([going.code, going.stderr]).toEqual([2, expect.stringContaining('the crawl bad is stopped')])

    const resumed = await deployment.run(['crawls', 'resume', 'bad', '--json'])
    expect(JSON.parse(resumed.stdout)).toMatchObject({ crawl: 'bad', stopped: false, accepted: 40, final: 40 })
    expect((await produce('anew.example', 'bad', 2)).code).toBe(0)
    await eventually(() => askedSince(0, 'anew.example') === 2, { what: 'its new URLs' })
    worker.child.kill('SIGTERM')
    await worker.done
  })

  it('says that it knows no URL of a crawl whose name was mistyped, and refuses a name that is none', async () => {
    expect((await deployment.run(['crawls', 'stop', 'sprnig'])).stderr).toContain(
      'no URL of a crawl with the name sprnig has been read yet',
    )
    expect((await deployment.run(['crawls', 'stop', ''])).code).toBe(2)
  })
})
