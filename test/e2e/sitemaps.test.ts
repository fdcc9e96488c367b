import zlib from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { Deployment } from '../support/deployment.ts'
import { TestSite } from '../support/fetch-fixture.ts'

interface Answer {
  readonly type: string
  readonly body?: string | Buffer
  readonly location?: string
}

/** Sitemaps that robots.txt names, through the whole program. */
describe('a crawl of a site with sitemaps', () => {
  const host = 'shop.example'
  let site: TestSite
  let deployment: Deployment
  const url = (path: string) => site.url(host, path)
  const urlset = (...paths: readonly string[]) => `<urlset>${paths.map((path) => `<url><loc>${url(path)}</loc></url>`).join('')}</urlset>`
  const sitemap = (...paths: readonly string[]) => paths.map((path) => `<sitemap><loc>${url(path)}</loc></sitemap>`).join('')

  /** Named by path, and made once the port is known; all else is a page with its path as title. */
  async function open(answers: Readonly<Record<string, () => Answer>>): Promise<void> {
    site = new TestSite((request, response) => {
      const { type, body = '', location } = answers[request.path]?.() ?? { type: 'text/html', body: `<title>${request.path}</title>` }
      if (location === undefined) response.setHeader('content-type', type).end(body)
      else response.writeHead(302, { location }).end()
    })
    await site.open()
    deployment = await Deployment.open({ set: ['politeness.default.ratePerSecond=50', 'politeness.default.concurrency=4'] })
    deployment.file('title.yaml', 'name: title\nversion: 1\nkey: title\nfields: { title: { select: title, required: true } }\n')
  }
  afterEach(async () => {
    await deployment?.close()
    await site?.close()
  })
  const run = (...flags: readonly string[]) => deployment.run(['run', ...flags, '--extractor', 'title.yaml', '--quiet'])
  const titles = async () => (await deployment.records()).map(({ value }) => (value.data as { title: string }).title).sort()

  it('fetches what they name, indexes and packed lists too, once, and takes no page from the crawl', async () => {
    await open({
      '/robots.txt': () => ({
        type: 'text/plain',
        body: `User-agent: *\nDisallow: /private\nSitemap: /index.php\nSitemap: ${url('/login.xml')}\n`,
      }),
      '/': () => ({
        type: 'text/html',
        body: '<title>/</title><a href="/linked">linked</a><a href="/both">both</a><a href="/login">log in</a>',
      }),
      // Of no type that says what it is, and of one that is no type of a page.
      '/index.php': () => ({
        type: 'text/html',
        body: `<sitemapindex>${sitemap('/one.xml', '/list.txt.gz', '/index.php')}</sitemapindex>`,
      }),
      '/one.xml': () => ({ type: 'application/xml', body: urlset('/listed', '/both', '/private/1') }),
      '/list.txt.gz': () => ({ type: 'application/x-gzip', body: zlib.gzipSync(`${url('/packed')}\nhttp://elsewhere.example/\n`) }),
      '/login.xml': () => ({ type: 'text/html', location: '/login' }),
      '/login': () => ({ type: 'text/html', body: '<!doctype html><title>/login</title><a href="/from-login">no sitemap</a>' }),
    })
    const result = await run(url('/'), '--depth', '1', '--limit', '6')
    expect({ code: result.code, stderr: result.stderr }).toEqual({ code: 3, stderr: '' })
    expect(await titles()).toEqual(['/', '/both', '/linked', '/listed', '/login', '/packed'])
    expect(result.stdout).toContain('robots 1')
    expect((await deployment.run(['audit'])).stdout).not.toContain('no extractor')
    const asked = site.requests.map(({ path }) => path).sort()
    expect(asked).toEqual(
      [
        '/',
        '/both',
        '/index.php',
        '/linked',
        '/list.txt.gz',
        '/listed',
        // In the place of the sitemap, and as a page.
        '/login',
        '/login',
        '/login.xml',
        '/one.xml',
        '/packed',
        '/robots.txt',
      ].sort(),
    )
  })

  it('reads one that is given as a URL, and none where that is not wanted', async () => {
    await open({
      '/robots.txt': () => ({ type: 'text/plain', body: `Sitemap: ${url('/one.xml')}\n` }),
      '/one.xml': () => ({ type: 'text/xml', body: urlset('/a', '/b') }),
    })
    expect((await run(url('/one.xml'), '--depth', '1', '--set', 'crawl.sitemaps=false')).code).toBe(0)
    expect((await run(url('/start'), '--depth', '1', '--set', 'crawl.sitemaps=false')).code).toBe(0)
    expect(await titles()).toEqual(['/start'])
    expect((await run(url('/one.xml'), '--depth', '1')).code).toBe(0)
    expect(await titles()).toEqual(['/a', '/b', '/start'])
  })
})
