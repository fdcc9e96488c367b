import { describe, expect, it } from 'vitest'
import { readAnswer } from '../../../src/fetch/answer.ts'
import { CHALLENGE_VENDORS, challengeOf } from '../../../src/fetch/challenge.ts'
import { corpusNote, corpusPages, hasCorpus } from '../../support/corpus.ts'
import { httpResponse } from '../../support/http-response.ts'

/** What walls answer with: status, headers, body. */
const CHALLENGES: readonly (readonly [vendor: string, status: number, headers: Readonly<Record<string, string>>, body: string])[] = [
  ['cloudflare', 403, { 'CF-Mitigated': 'challenge', server: 'cloudflare' }, ''],
  [
    'cloudflare',
    503,
    { server: 'cloudflare' },
    '<title>Just a moment...</title><script>window._cf_chl_opt={cvId:"3"};a.src="/cdn-cgi/challenge-platform/h/b/orchestrate"</script>',
  ],
  ['cloudflare', 503, {}, '<title>Just a moment...</title><script>(function(){window._cf_chl_opt={cvId:"3"}}())</script>'],
  [
    'cloudflare',
    503,
    {},
    '<div class="cf-browser-verification cf-im-under-attack"><form id="challenge-form" action="/x?__cf_chl_jschl_tk__=1">',
  ],
  ['datadome', 403, { 'x-datadome': 'protected' }, `<script>var dd={'rt':'c','cid':'1','host':'geo.captcha-delivery.com'}</script>`],
  ['human', 403, {}, `<div id="px-captcha"></div><script>window._pxAppId='PX1';</script>`],
  ['akamai', 428, {}, '<div id="sec-if-cpt-container"></div>'],
  [
    'akamai',
    200,
    {},
    `<meta http-equiv="refresh" content="5; URL='/?bm-verify=AAQ'"/><script>x.open("POST","/_sec/verify?provider=interstitial")</script>`,
  ],
  [
    'imperva',
    200,
    {},
    '<iframe id="main-iframe" src="/_Incapsula_Resource?CWUDNSAI=9&incident_id=1-2">Request unsuccessful. Incapsula incident ID: 1-2</iframe>',
  ],
  ['aws-waf', 202, { 'x-amzn-waf-action': 'challenge' }, ''],
  ['aws-waf', 405, { 'x-amzn-waf-action': 'captcha' }, '<script src="https://x.token.awswaf.com/challenge.js"></script>'],
  ['kasada', 429, { 'x-kpsdk-ct': '0a1b' }, ''],
  ['kasada', 429, {}, '<script>window.KPSDK={};</script><script src="/149/2d206/ips.js?x=1"></script>'],
  ['vercel', 429, { 'x-vercel-mitigated': 'challenge' }, ''],
  ['ddos-guard', 403, {}, '<title>DDoS-Guard</title><script src="/.well-known/ddos-guard/js-challenge/index.js"></script>'],
  [
    'sucuri',
    200,
    {},
    '<title>You are being redirected...</title><script>var s={},sucuri_cloudproxy_js="";eval(r);document.cookie=x</script>',
  ],
  [
    'anubis',
    200,
    {},
    '<script id="anubis_challenge" type="application/json">{}</script><script src="/.within.website/x/cmd/anubis/static/js/main.mjs"></script>',
  ],
  ['f5', 200, {}, '<script>window["bobcmn"] = "1";</script><noscript>Please enable JavaScript to view the page content.</noscript>'],
]

const respond = (status: number, headers: Readonly<Record<string, string>>, body: string) =>
  httpResponse(status, headers, { decoded: Buffer.from(body, 'latin1') })

describe('a challenge', () => {
  it.each(CHALLENGES)('of %s with status %i is recognised', (vendor, status, headers, body) => {
    expect(challengeOf(respond(status, headers, body))).toBe(vendor)
  })

  it('has an example here of every vendor that is known', () => {
    expect(new Set(CHALLENGES.map(([vendor]) => vendor))).toEqual(CHALLENGE_VENDORS)
  })

  it('is retried much later, by the slow lane, and keeps the site from being asked', () => {
    const context = { target: new URL('http://a.example/'), method: 'GET', headers: {}, body: null, chain: [], now: 0 }
    for (const [vendor, status, headers, body] of CHALLENGES) {
      expect(readAnswer(respond(status, { ...headers, 'retry-after': '30' }, body), context)).toMatchObject({
        kind: 'retry',
        reason: 'challenge',
        backsOff: true,
        factor: 12,
        retryAfterMs: 30_000,
        challengedBy: vendor,
      })
    }
  })

  it.each([
    [
      'an ordinary page behind Cloudflare, with its script in it',
      200,
      { server: 'cloudflare' },
      '<p>x</p><script>a.src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"</script>',
    ],
    [
      'an article about it',
      200,
      {},
      `<h1>Just a moment...</h1><p>_cf_chl_opt, captcha-delivery.com, window._pxAppId, px-captcha and /cdn-cgi/ explained</p>`,
    ],
    ['a refusal that talks of it', 403, {}, '<title>Just a moment...</title><h1>Too many requests</h1><p>Please wait.</p>'],
    [
      'a refusal that quotes it',
      403,
      {},
      '<title>Blocked</title><pre>&lt;title&gt;Just a moment...&lt;/title&gt; window._cf_chl_opt</pre>',
    ],
    [
      'a plain refusal by Cloudflare',
      403,
      { server: 'cloudflare' },
      '<title>Attention Required! | Cloudflare</title><h1>Sorry, you have been blocked</h1>',
    ],
    ['a plain refusal by Akamai', 403, { server: 'AkamaiGHost' }, '<H1>Access Denied</H1>Reference #18.1'],
    [
      'a page behind Imperva, with its script in it',
      200,
      {},
      `<p>${'text '.repeat(5_000)}</p><script src="/_Incapsula_Resource?SWJIYLWA=1&incident_id=2"></script>`,
    ],
    ['an error of the server', 503, {}, '<h1>Service Unavailable</h1>'],
    ['nothing', 403, {}, ''],
    ['a page that does not exist, with such a header of another value', 404, { 'cf-mitigated': 'none', 'x-kpsdk-ct': 'x' }, 'no'],
  ])('is not %s', (_about, status, headers, body) =>
    expect(challengeOf(respond(status, headers as Record<string, string>, body))).toBeUndefined(),
  )

  it('is looked for within a bound, however long the page', () => {
    const [, status, headers, body] = CHALLENGES[1] ?? ['', 0, {}, '']
    expect(challengeOf(respond(status, headers, `${' '.repeat(100_000)}${body}`))).toBeUndefined()
    const before = process.cpuUsage()
    challengeOf(respond(403, {}, '_Incapsula_Resource dd = dd = '.repeat(300_000)))
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(500)
  })
})

describe.skipIf(!hasCorpus)(`the pages of the corpus${corpusNote}`, () => {
  it('are no challenges, whatever the status', () => {
    const found = corpusPages().flatMap(({ id, bytes }) =>
      [200, 202, 403, 405, 429, 503].flatMap((status) => {
        const vendor = challengeOf(httpResponse(status, {}, { decoded: bytes }))
        return vendor === undefined ? [] : [`${id} with ${status}: ${vendor}`]
      }),
    )
    expect(found).toEqual([])
  })
})
