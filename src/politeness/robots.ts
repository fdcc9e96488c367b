import { MOST_CRAWL_DELAY_MS } from '../kernel/pace-bounds.ts'
import {
  decodeLetters,
  escapePath,
  escapePattern,
  matchPattern,
  type RobotsPattern,
  robotsPattern,
  type SoughtPath,
  searchCost,
  soughtPath,
} from './robots-pattern.ts'

/**
 * robots.txt by RFC 9309, lenient where Google's published parser is. Works on bytes: what stands for the same octet is written the
 * same way on both sides before it is compared (robots-pattern.ts), so that a line in a broken encoding loses itself and not the file.
 */
export interface RobotsRules {
  readonly groups: readonly RobotsGroup[]
  /** As written, octets as latin1; `sitemapUrls` reads and resolves them. */
  readonly sitemaps: readonly string[]
  /** Lines that were understood; 0: whatever was served, it holds no rules. */
  readonly understoodLines: number
}

interface RobotsGroup {
  /** Lower-case product tokens; `*` for all others. */
  readonly agents: string[]
  readonly rules: RobotsRule[]
  readonly crawlDelays: CrawlDelay[]
}

interface RobotsRule {
  readonly allow: boolean
  readonly pattern: RobotsPattern
  /** The folder itself, where the rule allows its index page. */
  readonly folder: RobotsPattern | undefined
  /** As written, octets as latin1: in UTF-8 an octet that belongs to no character would be lost to `textFor`. */
  readonly line: string
}

interface CrawlDelay {
  readonly agents: readonly string[]
  ms: number
}

export interface RobotsVerdict {
  readonly allowed: boolean
  /** Line that decided, as written, and whether it was looked at in full; undefined where none matches. */
  readonly rule: string | undefined
}

/** RFC 9309 section 2.5 asks for at least 500 KiB. */
export const MAX_ROBOTS_BYTES = 524_288
/** Google's parser reads lines into a buffer of 16,664 bytes, the last of which it keeps for itself. */
const MAX_LINE_BYTES = 16_663
/** Lines that are parsed in one go. */
const LINES_AT_ONCE = 1_000
/**
 * What rules with `*` may cost for one verdict, some ten milliseconds: a file may hold 37,000 of them, and each looks through the whole
 * path. In steps of `searchCost`: rules whose pieces begin with what is rare in the path, as those of shops with hundreds of filters do,
 * take a few hundred each where the path is as long as a URL may be.
 */
const MAX_STEPS = 20_000_000
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
  const parsing = parsed(body)
  for (;;) {
    const step = parsing.next()
    if (step.done === true) return step.value
  }
}

/** The same with a breath now and then: a whole file takes some hundred milliseconds. */
export async function parseRobotsInTurns(body: Buffer, nextTurn: () => Promise<void>): Promise<RobotsRules> {
  const parsing = parsed(body)
  for (;;) {
    const step = parsing.next()
    if (step.done === true) return step.value
    await nextTurn()
  }
}

/**
 * All that a file says: the lines that are understood, in their order, and so the same rules. What else there is (comments, a page in its
 * place, half a MiB of nothing) need not be kept. Shape: octets as latin1. Takes its turns as well.
 */
export async function understoodText(body: Buffer, nextTurn: () => Promise<void>): Promise<string> {
  const understood: string[] = []
  for (const [index, raw] of linesOf(body).entries()) {
    if (index % LINES_AT_ONCE === LINES_AT_ONCE - 1) await nextTurn()
    const read = parseLine(raw)
    if (read !== undefined) understood.push(read.line)
  }
  return understood.join('\n')
}

function linesOf(body: Buffer): readonly string[] {
  return withoutBom(asUtf8(body.subarray(0, MAX_ROBOTS_BYTES)))
    .toString('latin1')
    .split(/\r\n|\n|\r/)
}

/** Stops after some milliseconds of work. */
function* parsed(body: Buffer | string): Generator<undefined, RobotsRules> {
  const groups: RobotsGroup[] = []
  const sitemaps: string[] = []
  let open: RobotsGroup | undefined
  let hasRules = false
  // Of the lines that head the group, those to which a Crawl-delay belongs that comes now.
  let named: string[] = []
  let isNaming = false
  let understoodLines = 0
  for (const [index, raw] of linesOf(typeof body === 'string' ? Buffer.from(body, 'utf8') : body).entries()) {
    if (index % LINES_AT_ONCE === LINES_AT_ONCE - 1) yield
    const read = parseLine(raw)
    if (read === undefined) continue
    understoodLines += 1
    const { key, value, line } = read
    if (key === 'sitemap') {
      sitemaps.push(value)
    } else if (key === 'agent') {
      // Consecutive user-agent lines head one group; a rule in between ends it, an unknown line does not.
      if (open === undefined || hasRules) {
        open = { agents: [], rules: [], crawlDelays: [] }
        groups.push(open)
        hasRules = false
      }
      if (!isNaming) named = []
      isNaming = true
      const agent = agentOf(value)
      if (agent === undefined) continue
      open.agents.push(agent)
      named.push(agent)
    } else if (open === undefined) {
      // A rule before the first group speaks to nobody.
    } else if (key === 'crawl-delay') {
      // It ends no group, but a delay meant for one bot is not the delay of the bots that are named after it.
      isNaming = false
      const ms = crawlDelayOf(value)
      const last = open.crawlDelays.at(-1)
      // One for the same bots takes no place of its own: there may be as many delays as bots.
      if (ms !== undefined && last?.agents === named) last.ms = Math.max(last.ms, ms)
      else if (ms !== undefined) open.crawlDelays.push({ agents: named, ms })
    } else {
      isNaming = false
      hasRules = true
      open.rules.push(ruleOf(key === 'allow', value, line))
    }
  }
  return { groups, sitemaps, understoodLines }
}

function ruleOf(allow: boolean, value: string, line: string): RobotsRule {
  const written = escapePattern(value)
  const decoded = decodeLetters(written)
  const escaped = allow ? written : decoded
  // Allowing a folder's index page allows the folder itself (Google).
  const slash = escaped.lastIndexOf('/')
  const isIndex = allow && slash !== -1 && escaped.startsWith('/index.htm', slash)
  return {
    allow,
    // However a letter is written, it is one octet of a rule that is weighed against others.
    pattern: { ...robotsPattern(escaped), length: decoded.length },
    folder: isIndex ? robotsPattern(`${escaped.slice(0, slash + 1)}$`) : undefined,
    line,
  }
}

/** Seconds, with a point or a comma; a word behind them (`10 s`) changes nothing. */
function crawlDelayOf(value: string): number | undefined {
  const number = /^(?:\d+(?:[.,]\d*)?|[.,]\d+)/.exec(value)?.[0]
  return number === undefined ? undefined : Math.min(Math.round(Number(number.replace(',', '.')) * 1000), MOST_CRAWL_DELAY_MS)
}

/** White space of ASCII alone: `\xA0` may be the last octet of a character. */
function trim(text: string): string {
  let start = 0
  let end = text.length
  while (start < end && isSpace(text.charCodeAt(start))) start += 1
  while (end > start && isSpace(text.charCodeAt(end - 1))) end -= 1
  return text.slice(start, end)
}

function isSpace(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d)
}

function parseLine(
  raw: string,
): { key: 'agent' | 'allow' | 'disallow' | 'sitemap' | 'crawl-delay'; value: string; line: string } | undefined {
  const looked = raw.slice(0, MAX_LINE_BYTES)
  const comment = looked.indexOf('#')
  const line = trim(comment === -1 ? looked : looked.slice(0, comment))
  if (line === '') return undefined
  let separator = line.indexOf(':')
  // `disallow /x` without its colon is read where it is two words and no more.
  if (separator === -1) {
    const words = line.split(/[ \t]+/)
    if (words.length !== 2) return undefined
    separator = line.search(/[ \t]/)
  }
  const name = trim(line.slice(0, separator)).toLowerCase()
  const key = Object.hasOwn(KEYS, name) ? KEYS[name] : undefined
  return key === undefined ? undefined : { key, value: trim(line.slice(separator + 1)), line }
}

/** `FooBot/1.0 (x)` -> `foobot`; `*` where it stands alone; undefined where there is no token. */
function agentOf(value: string): string | undefined {
  if (/^\*(\s|$)/.test(value)) return '*'
  return /^[a-zA-Z_-]+/.exec(value)?.[0].toLowerCase()
}

/**
 * A file that some editors write in UTF-16 says so with its first octets, and is meant like every other. RFC 9309 knows UTF-8 alone, in
 * which there is no line in such a file: all would be allowed.
 */
function asUtf8(bytes: Buffer): Buffer {
  const mark = bytes.subarray(0, 2).toString('hex')
  if (mark !== 'fffe' && mark !== 'feff') return bytes
  const units = Buffer.from(bytes.subarray(2, bytes.length - (bytes.length % 2)))
  return Buffer.from((mark === 'feff' ? units.swap16() : units).toString('utf16le'))
}

function withoutBom(bytes: Buffer): Buffer {
  const bom = [0xef, 0xbb, 0xbf]
  let length = 0
  while (length < 3 && bytes[length] === bom[length]) length += 1
  return bytes.subarray(length)
}

/** Groups that speak to the token, or, where none does, to everybody. */
function groupsFor(rules: RobotsRules, token: string): readonly RobotsGroup[] {
  const specific = rules.groups.filter(({ agents }) => agents.includes(token))
  return specific.length > 0 ? specific : rules.groups.filter(({ agents }) => agents.includes('*'))
}

/**
 * May this path be fetched. The longest matching rule wins, on a tie the one that allows. Shape: token lower case, path with its
 * query as in a serialised URL. Cost: bounded, whatever the file holds: where its rules with `*` take too long, those that are left are
 * taken on the safe side, one that forbids as what stands before its `*`, which `rule` then says, and one that allows not at all.
 */
export function robotsVerdict(rules: RobotsRules, token: string, pathAndQuery: string): RobotsVerdict {
  if (pathAndQuery === '/robots.txt') return { allowed: true, rule: undefined }
  const written = soughtPath(escapePath(pathAndQuery))
  const decoded = soughtPath(decodeLetters(written.text))
  let best: Match | undefined
  const search: Search = { stepsLeft: MAX_STEPS }
  for (const { rules: lines } of groupsFor(rules, token)) {
    for (const rule of lines) {
      // A shorter rule can't change what is found already: most of a long file is passed by.
      if (best !== undefined && (rule.pattern.length < best.length || (rule.pattern.length === best.length && best.rule.allow))) continue
      const match = matchOf(rule, rule.allow ? written : decoded, search)
      if (match === undefined) continue
      if (best === undefined || match.length > best.length || (match.length === best.length && rule.allow)) best = match
    }
  }
  if (best === undefined) return { allowed: true, rule: undefined }
  const { rule, isTaken } = best
  // What is shown must not look like a rule that matches.
  const line = fromOctets(rule.line)
  const shown = isTaken ? `${line} (taken as ${rule.pattern.pieces[0]?.text}*: more rules with * than are looked at)` : line
  return { allowed: rule.allow, rule: shown }
}

/** What the groups for the token ask for; the largest where several do. Units: ms. A group of one's own does not inherit that of `*`. */
export function robotsCrawlDelayMs(rules: RobotsRules, token: string): number | undefined {
  const name = rules.groups.some(({ agents }) => agents.includes(token)) ? token : '*'
  let longest: number | undefined
  for (const { crawlDelays } of groupsFor(rules, token)) {
    for (const { agents, ms } of crawlDelays) {
      if (agents.includes(name) && (longest === undefined || ms > longest)) longest = ms
    }
  }
  return longest
}

/**
 * What counts for one token, and the sitemaps, as a file would say it: of one that is too large to be kept whole. Shape: octets as latin1.
 */
export function textFor(rules: RobotsRules, token: string): string {
  const groups = groupsFor(rules, token)
  const delayMs = robotsCrawlDelayMs(rules, token)
  return [
    `User-agent: ${groups.some(({ agents }) => agents.includes(token)) ? token : '*'}`,
    ...groups.flatMap((group) => group.rules.map(({ line }) => line)),
    ...(delayMs === undefined ? [] : [`Crawl-delay: ${delayMs / 1_000}`]),
    ...rules.sitemaps.map((sitemap) => `Sitemap: ${sitemap}`),
  ].join('\n')
}

function fromOctets(text: string): string {
  return Buffer.from(text, 'latin1').toString('utf8')
}

/** Sitemaps as absolute URLs, resolved against where the file was found; what is no http(s) URL is left out. */
export function sitemapUrls(rules: RobotsRules, robotsUrl: string): string[] {
  return rules.sitemaps.map(fromOctets).flatMap((text) => {
    if (!URL.canParse(text, robotsUrl)) return []
    const url = new URL(text, robotsUrl)
    return url.protocol === 'http:' || url.protocol === 'https:' ? [url.href] : []
  })
}

/** What may still be spent on a verdict. */
interface Search {
  stepsLeft: number
}

interface Match {
  /** Characters of the pattern that matched, its precedence. */
  readonly length: number
  readonly rule: RobotsRule
  /** It was not looked at behind its first `*`. */
  readonly isTaken: boolean
}

/** Shape: undefined where it does not match; an empty pattern never does. */
function matchOf(rule: RobotsRule, path: SoughtPath, search: Search): Match | undefined {
  if (rule.pattern.length === 0) return undefined
  for (const pattern of rule.folder === undefined ? [rule.pattern] : [rule.pattern, rule.folder]) {
    if (!path.text.startsWith(pattern.pieces[0]?.text ?? '')) continue
    const isTaken = pattern.pieces.length > 1 && search.stepsLeft <= 0
    if (pattern.pieces.length > 1) search.stepsLeft -= searchCost(pattern, path)
    if (isTaken ? !rule.allow : matchPattern(pattern, path.text)) return { length: pattern.length, rule, isTaken }
  }
  return undefined
}
