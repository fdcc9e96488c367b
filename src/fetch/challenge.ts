import type { HttpResponse } from './http-exchange.ts'

/**
 * Walls against robots answer with a page of their own in place of the one that was asked for: a test, a picture to read, a wait. It says
 * nothing about the URL, and asking again at once is what the wall is there against. Such an answer is retried by the slow lane.
 *
 * A wall has to be sure of itself here: a header that only it sends with such a page, or every marker of its page at once. An ordinary page
 * of a site behind the same vendor (whose scripts stand in every page of it), an article about walls, and a plain "access denied" are no
 * challenges.
 */
interface Wall {
  readonly vendor: string
  /** Statuses that it uses; undefined: any. */
  readonly statuses?: readonly number[]
  /** One that has this value is enough. Names in lower case. */
  readonly header?: readonly [name: string, value: RegExp]
  /** All of these within the first bytes of the body. */
  readonly markers?: readonly RegExp[]
  /** A longer page is the site's own. Bytes, decoded. */
  readonly maxBytes?: number
}

const REFUSALS = [403, 429, 503] as const
/** A page that is sent with 200 has to be small to be no page of the site. */
const INTERSTITIAL_BYTES = 65_536
const SEARCHED_BYTES = 65_536
/** A wall in the place of a page that is there names itself at once: its scripts are its head. */
const SEARCHED_BYTES_OF_OK = 16_384

const WALLS: readonly Wall[] = [
  { vendor: 'cloudflare', header: ['cf-mitigated', /^challenge$/i] },
  {
    vendor: 'cloudflare',
    statuses: REFUSALS,
    markers: [/_cf_chl_opt|cf-browser-verification|id="cf-challenge/, /\/cdn-cgi\/|jschl|<title>Just a moment\.\.\.<\/title>/],
  },
  { vendor: 'datadome', statuses: REFUSALS, markers: [/captcha-delivery\.com/, /\bdd\s*=\s*\{/] },
  { vendor: 'human', statuses: REFUSALS, markers: [/_pxAppId/, /px-captcha|captcha\.px-cdn\.net|captcha\.perimeterx\.net/] },
  { vendor: 'akamai', statuses: [403, 428, 429], markers: [/sec-if-cpt-container|\/_sec\/cp_challenge\//] },
  {
    vendor: 'akamai',
    statuses: [200, 403],
    markers: [/bm-verify=/, /\/_sec\/verify\?provider=interstitial/],
    maxBytes: INTERSTITIAL_BYTES,
  },
  {
    vendor: 'imperva',
    statuses: [200, 403, 503],
    markers: [/_Incapsula_Resource\?/, /incident_id=|Incapsula incident ID/],
    maxBytes: 16_384,
  },
  { vendor: 'aws-waf', statuses: [202, 405], header: ['x-amzn-waf-action', /^(?:challenge|captcha)$/i] },
  { vendor: 'kasada', statuses: REFUSALS, header: ['x-kpsdk-ct', /./] },
  { vendor: 'kasada', statuses: REFUSALS, markers: [/window\.KPSDK\s*=/, /\/ips\.js\?/] },
  { vendor: 'vercel', statuses: REFUSALS, header: ['x-vercel-mitigated', /^challenge$/i] },
  { vendor: 'ddos-guard', statuses: REFUSALS, markers: [/\/\.well-known\/ddos-guard\/(?:js-challenge|check)/] },
  { vendor: 'sucuri', statuses: [200, 403, 503], markers: [/sucuri_cloudproxy_js/, /document\.cookie|eval\(/], maxBytes: 16_384 },
  {
    vendor: 'anubis',
    statuses: [200, 401, 403],
    markers: [/id="anubis_(?:challenge|version)"/, /\.within\.website\/x\/cmd\/anubis\//],
    maxBytes: INTERSTITIAL_BYTES,
  },
  {
    vendor: 'f5',
    statuses: [200, 403, 503],
    markers: [/window\["bobcmn"\]/, /Please enable JavaScript to view the page content/],
    maxBytes: INTERSTITIAL_BYTES,
  },
]

/** The vendors that are known, for labels. */
export const CHALLENGE_VENDORS: ReadonlySet<string> = new Set(WALLS.map(({ vendor }) => vendor))

/** Vendor of the wall that answered; undefined: it was no wall that is known. Pure, bounded. */
export function challengeOf(response: HttpResponse): string | undefined {
  let head: string | undefined
  const text = (): string => {
    head ??= response.decoded.subarray(0, response.status === 200 ? SEARCHED_BYTES_OF_OK : SEARCHED_BYTES).toString('latin1')
    return head
  }
  let hasMarker: boolean | undefined
  const mayHaveMarkers = (): boolean => {
    hasMarker ??= firstMarkersOf(response.status).test(text())
    return hasMarker
  }
  return WALLS.find((wall) => isOf(wall, response, mayHaveMarkers, text))?.vendor
}

const firstMarkers = new Map<number, RegExp>()

/**
 * The first marker of every wall that answers with this status, in one expression: one pass over the text tells that it is none of them, as
 * nearly every page is, where a pass for each would take longer than unpacking the page.
 */
function firstMarkersOf(status: number): RegExp {
  const known = firstMarkers.get(status)
  if (known !== undefined) return known
  const sources = WALLS.flatMap(({ statuses, markers }) => (statuses?.includes(status) === false ? [] : (markers?.slice(0, 1) ?? [])))
  const made = new RegExp(sources.map(({ source }) => source).join('|'))
  firstMarkers.set(status, made)
  return made
}

function isOf(
  { statuses, header, markers, maxBytes }: Wall,
  response: HttpResponse,
  mayHaveMarkers: () => boolean,
  text: () => string,
): boolean {
  if (statuses !== undefined && !statuses.includes(response.status)) return false
  if (header !== undefined) {
    const [name, value] = header
    return response.headers.some((field) => field.name.toLowerCase() === name && value.test(field.value.trim()))
  }
  if (markers === undefined || response.decoded.length === 0) return false
  if (maxBytes !== undefined && response.decoded.length > maxBytes) return false
  return mayHaveMarkers() && markers.every((marker) => marker.test(text()))
}
