/**
 * What Google's published matcher says, as a table of ours: each verdict that its robots_test.cc asserts for a file, an agent and a
 * URL, on `http://site.test` where not said otherwise. Source: github.com/google/robotstxt (Apache-2.0), robots_test.cc.
 *
 * Left out: numbers of lines, which nobody asks for here, and paths of URLs without a scheme, since no such URL comes here. Different,
 * and marked: URLs with raw characters outside ASCII. Google's matcher leaves the encoding of a URL to its caller and then finds no
 * match; RFC 9309 section 2.2.2 encodes both sides.
 */
export interface GoogleCase {
  readonly about: string
  readonly robots: string
  readonly agent: string
  readonly allowed: readonly string[]
  readonly refused: readonly string[]
}

const lines = (...text: string[]): string => text.map((line) => `${line}\n`).join('')
const foo = (...rules: string[]): string => lines('user-agent: FooBot', ...rules)

interface Verdicts {
  readonly allowed?: readonly string[]
  readonly refused?: readonly string[]
}

const say = (about: string, robots: string, agent: string, { allowed = [], refused = [] }: Verdicts): GoogleCase => ({
  about,
  robots,
  agent,
  allowed,
  refused,
})

const stackedGroups = lines(
  'allow: /foo/bar/',
  '',
  'user-agent: FooBot',
  'disallow: /',
  'allow: /x/',
  'user-agent: BarBot',
  'disallow: /',
  'allow: /y/',
  '',
  '',
  'allow: /w/',
  'user-agent: BazBot',
  '',
  'user-agent: FooBot',
  'allow: /z/',
  'disallow: /',
)
const everybody = lines('user-agent: *', 'allow: /', 'user-agent: FooBot', 'disallow: /')
const named = lines('user-agent: FooBot', 'allow: /', 'user-agent: BarBot', 'disallow: /', 'user-agent: BazBot', 'disallow: /')
const firstWord = lines('User-Agent: *', 'Disallow: /', 'User-Agent: Foo Bar', 'Allow: /x/', 'Disallow: /')
const indexPage = lines('User-Agent: *', 'Allow: /allowed-slash/index.html', 'Disallow: /')
const encoded = (allow: string): string => lines('User-agent: FooBot', 'Disallow: /', `Allow: ${allow}`)

/** So long that the line is full with it; what follows is cut but for one character. */
const longPath = (letter: string, directive: string): string => `/x/${letter.repeat(16_664 - 3 - directive.length + 1 - 3)}`
const longDisallow = longPath('a', 'disallow: ')
const [longA, longB] = [longPath('a', 'allow: '), longPath('b', 'allow: ')]

const spellings = [
  'USER-AGENT: FooBot|ALLOW: /x/|DISALLOW: /',
  'user-agent: FooBot|allow: /x/|disallow: /',
  'uSeR-aGeNt: FooBot|AlLoW: /x/|dIsAlLoW: /',
]
const agentSpellings = ['FOO BAR', 'foo bar', 'FoO bAr']

const fishes = ['/fish', '/fish.html', '/fish/salmon.html', '/fishheads', '/fishheads/yummy.html', '/fish.html?id=anything']

export const GOOGLE_CASES: readonly GoogleCase[] = [
  say('an empty file', '', 'FooBot', { allowed: [''] }),
  say('a file for others, asked without a name', foo('disallow: /'), '', { allowed: [''] }),
  say('a URL without a path', foo('disallow: /'), 'FooBot', { refused: [''] }),
  say('nothing at all', '', '', { allowed: [''] }),
  say('lines as they should be', foo('disallow: /'), 'FooBot', { refused: ['/x/y'] }),
  say('names that do not exist', lines('foo: FooBot', 'bar: /'), 'FooBot', { allowed: ['/x/y'] }),
  say('lines without their colon', lines('user-agent FooBot', 'disallow /'), 'FooBot', { refused: ['/x/y'] }),
  say('two groups of one agent', stackedGroups, 'FooBot', { allowed: ['/x/b', '/z/d'], refused: ['/y/c', '/foo/bar/'] }),
  say('a group with rules after empty lines', stackedGroups, 'BarBot', { allowed: ['/y/c', '/w/a'], refused: ['/z/d', '/foo/bar/'] }),
  say('an agent that shares its group', stackedGroups, 'BazBot', { allowed: ['/z/d'], refused: ['/foo/bar/'] }),
  ...spellings.map((text) =>
    say(`line names as ${text.slice(0, 10)}`, text.replaceAll('|', '\n'), 'FooBot', { allowed: ['/x/y'], refused: ['/a/b'] }),
  ),
  ...agentSpellings.flatMap((name) =>
    ['Foo', 'foo'].map((agent) =>
      say(`agent ${name} for ${agent}`, lines(`User-Agent: ${name}`, 'Allow: /x/', 'Disallow: /'), agent, {
        allowed: ['/x/y'],
        refused: ['/a/b'],
      }),
    ),
  ),
  say('an agent counts up to its first space', firstWord, 'Foo', { allowed: ['/x/y'] }),
  say('a name with a space is nobody', firstWord, 'Foo Bar', { refused: ['/x/y'] }),
  say('no groups', '', 'FooBot', { allowed: ['/x/y'] }),
  say('its own group before that of all', everybody, 'FooBot', { refused: ['/x/y'] }),
  say('the group of all for the others', everybody, 'BarBot', { allowed: ['/x/y'] }),
  say('groups of others', named, 'QuxBot', { allowed: ['/x/y'] }),
  say('a path in its case', foo('disallow: /x/'), 'FooBot', { refused: ['/x/y'] }),
  say('a path in another case', foo('disallow: /X/'), 'FooBot', { allowed: ['/x/y'] }),

  say('the longer rule forbids', foo('disallow: /x/page.html', 'allow: /x/'), 'FooBot', { refused: ['/x/page.html'] }),
  say('the longer rule allows', foo('allow: /x/page.html', 'disallow: /x/'), 'FooBot', { allowed: ['/x/page.html'], refused: ['/x/'] }),
  say('empty rules', foo('disallow: ', 'allow: '), 'FooBot', { allowed: ['/x/page.html'] }),
  say('a tie on all', foo('disallow: /', 'allow: /'), 'FooBot', { allowed: ['/x/page.html'] }),
  say('a slash more', foo('disallow: /x', 'allow: /x/'), 'FooBot', { allowed: ['/x/'], refused: ['/x'] }),
  say('a tie on a page', foo('disallow: /x/page.html', 'allow: /x/page.html'), 'FooBot', { allowed: ['/x/page.html'] }),
  say('a wildcard that is longer', foo('allow: /page', 'disallow: /*.html'), 'FooBot', { allowed: ['/page'], refused: ['/page.html'] }),
  say('a path that is longer', foo('allow: /x/page.', 'disallow: /*.html'), 'FooBot', {
    allowed: ['/x/page.html'],
    refused: ['/x/y.html'],
  }),
  say('its own group only', lines('User-agent: *', 'Disallow: /x/', 'User-agent: FooBot', 'Disallow: /y/'), 'FooBot', {
    allowed: ['/x/page'],
    refused: ['/y/page'],
  }),

  say('a URL within a query', encoded('/foo/bar?qux=taz&baz=http://foo.bar?tar&par'), 'FooBot', {
    allowed: ['/foo/bar?qux=taz&baz=http://foo.bar?tar&par'],
  }),
  // Google refuses the raw form in these two; see above.
  say('a raw character in the rule', encoded('/foo/bar/ツ'), 'FooBot', { allowed: ['/foo/bar/%E3%83%84', '/foo/bar/ツ'] }),
  say('an encoded character in the rule', encoded('/foo/bar/%E3%83%84'), 'FooBot', { allowed: ['/foo/bar/%E3%83%84', '/foo/bar/ツ'] }),
  say('letters that need no encoding', encoded('/foo/bar/%62%61%7A'), 'FooBot', {
    allowed: ['/foo/bar/%62%61%7A'],
    refused: ['/foo/bar/baz'],
  }),

  say('a wildcard in between', foo('Disallow: /foo/bar/quz', 'Allow: /foo/*/qux'), 'FooBot', {
    allowed: ['/foo/quz', '/foo//quz', '/foo/bax/quz'],
    refused: ['/foo/bar/quz'],
  }),
  say('an end', foo('Disallow: /foo/bar$', 'Allow: /foo/bar/qux'), 'FooBot', {
    allowed: ['/foo/bar/qux', '/foo/bar/', '/foo/bar/baz'],
    refused: ['/foo/bar'],
  }),
  say('comments', foo('# Disallow: /', 'Disallow: /foo/quz#qux', 'Allow: /'), 'FooBot', { allowed: ['/foo/bar'], refused: ['/foo/quz'] }),
  say('an index page', indexPage, 'foobot', {
    allowed: ['/allowed-slash/', '/allowed-slash/index.html'],
    refused: ['/allowed-slash/index.htm', '/anyother-url'],
  }),
  say('a rule cut at the end of its line', foo(`disallow: ${longDisallow}/qux`), 'FooBot', {
    allowed: ['/fux'],
    refused: [`${longDisallow}/fux`],
  }),
  say('two rules cut at the ends of their lines', foo('disallow: /', `allow: ${longA}/qux`, `allow: ${longB}/qux`), 'FooBot', {
    allowed: [`${longA}/qux`, `${longB}/fux`],
    refused: ['/'],
  }),

  say('/fish', foo('disallow: /', 'allow: /fish'), 'FooBot', { allowed: fishes, refused: ['/bar', '/Fish.asp', '/catfish', '/?id=fish'] }),
  say('/fish*', foo('disallow: /', 'allow: /fish*'), 'FooBot', {
    allowed: fishes,
    refused: ['/bar', '/Fish.bar', '/catfish', '/?id=fish'],
  }),
  say('/fish/', foo('disallow: /', 'allow: /fish/'), 'FooBot', {
    allowed: ['/fish/', '/fish/salmon', '/fish/?salmon', '/fish/salmon.html', '/fish/?id=anything'],
    refused: ['/bar', '/fish', '/fish.html', '/Fish/Salmon.html'],
  }),
  say('/*.php', foo('disallow: /', 'allow: /*.php'), 'FooBot', {
    allowed: [
      '/filename.php',
      '/folder/filename.php',
      '/folder/filename.php?parameters',
      '//folder/any.php.file.html',
      '/filename.php/',
      '/index?f=filename.php/',
    ],
    refused: ['/bar', '/php/', '/index?php', '/windows.PHP'],
  }),
  say('/*.php$', foo('disallow: /', 'allow: /*.php$'), 'FooBot', {
    allowed: ['/filename.php', '/folder/filename.php'],
    refused: [
      '/bar',
      '/filename.php?parameters',
      '/filename.php/',
      '/filename.php5',
      '/php/',
      '/filename?php',
      '/aaaphpaaa',
      '//windows.PHP',
    ],
  }),
  say('/fish*.php', foo('disallow: /', 'allow: /fish*.php'), 'FooBot', {
    allowed: ['/fish.php', '/fishheads/catfish.php?parameters'],
    refused: ['/bar', '/Fish.PHP'],
  }),
  say('/p before /', foo('allow: /p', 'disallow: /'), 'FooBot', { allowed: ['/page'] }),
  say('/folder twice', foo('allow: /folder', 'disallow: /folder'), 'FooBot', { allowed: ['/folder/page'] }),
  say('/*.htm before /page', foo('allow: /page', 'disallow: /*.htm'), 'FooBot', { refused: ['/page.htm'] }),
  say('/$', foo('allow: /$', 'disallow: /'), 'FooBot', { allowed: ['/'], refused: ['/page.html'] }),
]

/** Names of bots that may be asked for as they are, and those that are more than a product token. */
export const GOOGLE_TOKENS: { readonly valid: readonly string[]; readonly invalid: readonly string[] } = {
  valid: ['Foobot', 'Foobot-Bar', 'Foo_Bar'],
  invalid: ['', 'ツ', 'Foobot*', ' Foobot ', 'Foobot/2.1', 'Foobot Bar'],
}

const fourLines = (...ends: string[]): string =>
  ['User-Agent: foo', 'Allow: /some/path', 'User-Agent: bar', '', '', 'Disallow: /']
    .map((line, index) => line + (ends[index] ?? ''))
    .join('')

/** Files and how many of their lines are understood. */
export const GOOGLE_FILES: readonly (readonly [about: string, file: Buffer, understood: number])[] = [
  ['Unix line ends', Buffer.from(fourLines('\n', '\n', '\n', '\n', '\n', '\n')), 4],
  ['DOS line ends', Buffer.from(fourLines('\r\n', '\r\n', '\r\n', '\r\n', '\r\n', '\r\n')), 4],
  ['old Mac line ends', Buffer.from(fourLines('\r', '\r', '\r', '\r', '\r', '\r')), 4],
  ['no line end at the end', Buffer.from(fourLines('\n', '\n', '\n', '\n', '\n')), 4],
  ['mixed line ends', Buffer.from(fourLines('\n', '\r\n', '\n', '\r\n', '\n')), 4],
  ['a byte order mark', withBytes([0xef, 0xbb, 0xbf]), 2],
  ['two bytes of a byte order mark', withBytes([0xef, 0xbb]), 2],
  ['one byte of a byte order mark', withBytes([0xef]), 2],
  ['a broken byte order mark', withBytes([0xef, 0x11, 0xbf]), 1],
  ['a byte order mark in the middle', Buffer.concat([Buffer.from('User-Agent: foo\n'), Buffer.from('\ufeffAllow: /AnyValue\n')]), 1],
]

function withBytes(bytes: readonly number[]): Buffer {
  return Buffer.concat([Buffer.from(bytes), Buffer.from('User-Agent: foo\nAllow: /AnyValue\n')])
}

/** Rules and the spelling in which they are compared. */
export const GOOGLE_SPELLINGS: readonly (readonly [rule: string, compared: string])[] = [
  ['http://www.example.com', 'http://www.example.com'],
  ['/a/b/c', '/a/b/c'],
  ['á', '%C3%A1'],
  ['%aa', '%AA'],
]

/** URLs and what of them is compared. */
export const GOOGLE_PATHS: readonly (readonly [url: string, compared: string])[] = [
  ['http://www.example.com', '/'],
  ['http://www.example.com/', '/'],
  ['http://www.example.com/a', '/a'],
  ['http://www.example.com/a/', '/a/'],
  ['http://www.example.com/a/b?c=http://d.e/', '/a/b?c=http://d.e/'],
  ['http://www.example.com/a/b?c=d&e=f#fragment', '/a/b?c=d&e=f'],
  ['http://example.com?a', '/?a'],
  ['http://example.com/a;b#c', '/a;b'],
]

/** Files that name one sitemap, before, within or behind the groups. */
export const GOOGLE_SITEMAP = 'http://foo.bar/sitemap.xml'
export const GOOGLE_SITEMAP_FILES: readonly string[] = [
  lines('User-Agent: foo', 'Allow: /some/path', 'User-Agent: bar', '', '', `Sitemap: ${GOOGLE_SITEMAP}`),
  lines(`Sitemap: ${GOOGLE_SITEMAP}`, 'User-Agent: foo', 'Allow: /some/path', 'User-Agent: bar', '', ''),
]
