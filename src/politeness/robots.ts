/**
 * robots.txt by RFC 9309, lenient where Google's published parser is. Works on bytes: octets above 127 are percent-encoded on both
 * sides before they are compared, so that a line in a broken encoding loses itself and not the file.
 *
 * One choice where the two sources differ: `%62%61%7A` in a rule is not `baz` (Google's tests; the table of the RFC decodes it).
 */
export interface RobotsRules {
  readonly groups: readonly RobotsGroup[]
  /** As written; `sitemapUrls` resolves them. */
  readonly sitemaps: readonly string[]
  /** Lines that were understood; 0: whatever was served, it holds no rules. */
  readonly understoodLines: number
}

interface RobotsGroup {
  /** Lower-case product tokens; `*` for all others. */
  readonly agents: string[]
  readonly rules: RobotsRule[]
  crawlDelayMs: number | undefined
}

interface RobotsRule {
  readonly allow: boolean
  readonly pattern: string
  readonly line: string
}

export interface RobotsVerdict {
  readonly allowed: boolean
  /** Line that decided, as written; undefined where none matches. */
  readonly rule: string | undefined
}

/** RFC 9309 section 2.5 asks for at least 500 KiB. */
export const MAX_ROBOTS_BYTES = 524_288
const MAX_LINE_BYTES = 16_664
const KEYS: Readonly<Record<string, 'agent' | 'allow' | 'disallow' | 'sitemap' | 'crawl-delay'>> = {
  'user-agent': 'agent',
  useragent: 'agent',
  'user agent': 'agent',
  allow: 'allow',
  disallow: 'disallow',
  // Misspellings that Google found often enough to read them.
  dissallow: 'disallow',
  dissalow: 'disallow',
  disalow: 'disallow',
  diasllow: 'disallow',
  disallaw: 'disallow',
  sitemap: 'sitemap',
  'site-map': 'sitemap',
  'crawl-delay': 'crawl-delay',
  crawldelay: 'crawl-delay',
}

/** Total: any bytes give rules. Shape: what lies beyond 512 KiB is not read. */
export function parseRobots(body: Buffer | string): RobotsRules {
  const bytes = typeof body === 'string' ? Buffer.from(body, 'utf8') : body
  const text = withoutBom(bytes.subarray(0, MAX_ROBOTS_BYTES)).toString('latin1')
  const groups: RobotsGroup[] = []
  const sitemaps: string[] = []
  let open: RobotsGroup | undefined
  let hasRules = false
  let understoodLines = 0
  for (const raw of text.split(/\r\n|\n|\r/)) {
    const parsed = parseLine(raw.slice(0, MAX_LINE_BYTES))
    if (parsed === undefined) continue
    understoodLines += 1
    const { key, value, line } = parsed
    if (key === 'sitemap') {
      sitemaps.push(Buffer.from(value, 'latin1').toString('utf8'))
    } else if (key === 'agent') {
      // Consecutive user-agent lines head one group; a rule in between ends it, an unknown line does not.
      if (open === undefined || hasRules) {
        open = { agents: [], rules: [], crawlDelayMs: undefined }
        groups.push(open)
        hasRules = false
      }
      const agent = agentOf(value)
      if (agent !== undefined) open.agents.push(agent)
    } else if (key === 'crawl-delay') {
      const seconds = Number(value.replace(',', '.'))
      if (open !== undefined && value !== '' && Number.isFinite(seconds) && seconds >= 0) open.crawlDelayMs = Math.round(seconds * 1000)
    } else if (open !== undefined) {
      hasRules = true
      open.rules.push({ allow: key === 'allow', pattern: escapeOctets(value), line: Buffer.from(line, 'latin1').toString('utf8') })
    }
  }
  return { groups, sitemaps, understoodLines }
}

function parseLine(
  raw: string,
): { key: 'agent' | 'allow' | 'disallow' | 'sitemap' | 'crawl-delay'; value: string; line: string } | undefined {
  const comment = raw.indexOf('#')
  const line = (comment === -1 ? raw : raw.slice(0, comment)).trim()
  if (line === '') return undefined
  let separator = line.indexOf(':')
  // `disallow /x` without its colon is read where it is two words and no more.
  if (separator === -1) {
    const words = line.split(/[ \t]+/)
    if (words.length !== 2) return undefined
    separator = line.search(/[ \t]/)
  }
  const name = line.slice(0, separator).trim().toLowerCase()
  const key = Object.hasOwn(KEYS, name) ? KEYS[name] : undefined
  return key === undefined ? undefined : { key, value: line.slice(separator + 1).trim(), line }
}

/** `FooBot/1.0 (x)` -> `foobot`; `*` where it stands alone; undefined where there is no token. */
function agentOf(value: string): string | undefined {
  if (/^\*(\s|$)/.test(value)) return '*'
  return /^[a-zA-Z_-]+/.exec(value)?.[0].toLowerCase()
}

function withoutBom(bytes: Buffer): Buffer {
  const bom = [0xef, 0xbb, 0xbf]
  let length = 0
  while (length < 3 && bytes[length] === bom[length]) length += 1
  return bytes.subarray(length)
}

/**
 * The name by which a robots.txt speaks to us. Shape: a User-Agent header -> its product token, also where it hides behind
 * `Mozilla/5.0 (compatible; …)`. Source: RFC 9309 section 2.2.1.
 */
export function productToken(userAgent: string): string {
  const hidden = /^Mozilla\/\S*\s*\(\s*compatible\s*;\s*([a-zA-Z_-]+)/i.exec(userAgent)?.[1]
  return (hidden ?? /[a-zA-Z_-]+/.exec(userAgent)?.[0] ?? '').toLowerCase()
}

/** Groups that speak to the token, or, where none does, to everybody. */
function groupsFor(rules: RobotsRules, token: string): readonly RobotsGroup[] {
  const specific = rules.groups.filter(({ agents }) => agents.includes(token))
  return specific.length > 0 ? specific : rules.groups.filter(({ agents }) => agents.includes('*'))
}

/**
 * May this path be fetched. The longest matching rule wins, on a tie the one that allows. Shape: token lower case, path with its
 * query as in a serialised URL.
 */
export function robotsVerdict(rules: RobotsRules, token: string, pathAndQuery: string): RobotsVerdict {
  const path = escapeOctets(pathAndQuery)
  if (path === '/robots.txt') return { allowed: true, rule: undefined }
  let best: { length: number; rule: RobotsRule } | undefined
  for (const { rules: lines } of groupsFor(rules, token)) {
    for (const rule of lines) {
      const length = matchLength(rule, path)
      if (length === 0) continue
      if (best === undefined || length > best.length || (length === best.length && rule.allow)) best = { length, rule }
    }
  }
  return best === undefined ? { allowed: true, rule: undefined } : { allowed: best.rule.allow, rule: best.rule.line }
}

/** What the groups for the token ask for; the largest where several do. Units: ms. A group of one's own does not inherit that of `*`. */
export function robotsCrawlDelayMs(rules: RobotsRules, token: string): number | undefined {
  const delays = groupsFor(rules, token).flatMap(({ crawlDelayMs }) => (crawlDelayMs === undefined ? [] : [crawlDelayMs]))
  return delays.length === 0 ? undefined : Math.max(...delays)
}

/** Sitemaps as absolute URLs, resolved against where the file was found; what is no http(s) URL is left out. */
export function sitemapUrls(rules: RobotsRules, robotsUrl: string): string[] {
  return rules.sitemaps.flatMap((text) => {
    if (!URL.canParse(text, robotsUrl)) return []
    const url = new URL(text, robotsUrl)
    return url.protocol === 'http:' || url.protocol === 'https:' ? [url.href] : []
  })
}

/** Characters of the pattern that matched, its precedence; 0: no match, and an empty pattern never matches. */
function matchLength(rule: RobotsRule, path: string): number {
  if (rule.pattern === '') return 0
  if (matches(rule.pattern, path)) return rule.pattern.length
  // Allowing a folder's index page allows the folder itself.
  const slash = rule.pattern.lastIndexOf('/')
  if (rule.allow && slash !== -1 && rule.pattern.slice(slash).startsWith('/index.htm')) {
    const folder = `${rule.pattern.slice(0, slash + 1)}$`
    if (matches(folder, path)) return folder.length
  }
  return 0
}

/** `*` stands for anything, `$` at the end for the end; everything else for itself. Linear: no pattern can make it run away. */
function matches(pattern: string, path: string): boolean {
  const anchored = pattern.endsWith('$')
  const pieces = (anchored ? pattern.slice(0, -1) : pattern).split('*')
  const first = pieces[0] ?? ''
  if (!path.startsWith(first)) return false
  let at = first.length
  for (const [index, piece] of pieces.entries()) {
    if (index === 0) continue
    if (anchored && index === pieces.length - 1) return path.length - piece.length >= at && path.endsWith(piece)
    const found = path.indexOf(piece, at)
    if (found === -1) return false
    at = found + piece.length
  }
  return !anchored || at === path.length
}

/** Octets above 127 percent-encoded, hex digits upper case; nothing is decoded. Input: latin1 characters, or an ASCII URL. */
function escapeOctets(text: string): string {
  return text
    .replaceAll(/%[0-9a-fA-F]{2}/g, (sequence) => sequence.toUpperCase())
    .replaceAll(/[^\x20-\x7e\t]/g, (character) =>
      [...Buffer.from(character, character.charCodeAt(0) > 255 ? 'utf8' : 'latin1')]
        .map((octet) => `%${octet.toString(16).toUpperCase().padStart(2, '0')}`)
        .join(''),
    )
}
