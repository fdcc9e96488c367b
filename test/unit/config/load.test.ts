import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { describeConfig } from '../../../src/config/describe.ts'
import { loadConfig, wholeEnvironment } from '../../../src/config/load.ts'
import { environmentName, OPTIONS } from '../../../src/config/options.ts'
import { isMillraceError } from '../../../src/kernel/errors.ts'

function file(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'millrace-config-')), 'millrace.yaml')
  writeFileSync(path, text)
  return path
}

function problem(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (isMillraceError(error)) return `${error.code}: ${error.message}`
    throw error
  }
  throw new Error('expected an error')
}

const nothing = { sets: [], flags: {}, environment: {} } as const

describe('the configuration', () => {
  it('refuses an option of the call that there is not, and says how one is written', () => {
    const flags = (value: object) => ({ ...nothing, flags: value as Record<string, string> })
    expect(problem(() => loadConfig(flags({ 'fetch.concurency': '5' })))).toBe(
      'CONFIG_UNKNOWN_KEY: unknown option fetch.concurency (of the call); did you mean fetch.concurrency?',
    )
    expect(problem(() => loadConfig(flags({ politeness: { default: { ratePerSecond: 0.2 } } })))).toMatch(
      /^CONFIG_UNKNOWN_KEY: unknown option politeness \(of the call\); it is a section, whose options are named by their whole path, as politeness\.\S+$/,
    )
  })

  it('takes rules, groups and maps of the call as they stand in the file', () => {
    const flags = {
      'politeness.rules': [{ match: '*.example.com', ratePerSecond: 5, crawlDelay: '2s' }],
      'extract.groups': { slow: ['book'] },
      'fetch.resolve': { 'a.example': '127.0.0.1' },
    }
    const { config } = loadConfig({ ...nothing, flags })
    expect(config['politeness.rules']).toEqual([{ match: '*.example.com', ratePerSecond: 5, crawlDelayMs: 2_000 }])
    expect([config['extract.groups'], config['fetch.resolve']]).toEqual([{ slow: ['book'] }, { 'a.example': '127.0.0.1' }])
  })

  it('passes over what Kubernetes puts into the environment for a service that is called millrace', () => {
    const environment = {
      MILLRACE_SERVICE_HOST: '10.0.0.1',
      MILLRACE_SERVICE_PORT: '9464',
      MILLRACE_SERVICE_PORT_METRICS: '9464',
      MILLRACE_PORT: 'tcp://10.0.0.1:9464',
      MILLRACE_PORT_9464_TCP: 'tcp://10.0.0.1:9464',
      MILLRACE_PORT_9464_TCP_ADDR: '10.0.0.1',
      MILLRACE_PORT_9464_TCP_PORT: '9464',
      MILLRACE_PORT_9464_TCP_PROTO: 'tcp',
      MILLRACE_METRICS_PORT: 'tcp://10.0.0.2:9464',
      MILLRACE_METRICS_SERVICE_HOST: '10.0.0.2',
    }
    expect(loadConfig({ ...nothing, environment }).config).toEqual(loadConfig(nothing).config)
    expect(loadConfig({ ...nothing, environment: { MILLRACE_METRICS_PORT: '9464' } }).config['metrics.port']).toBe(9464)
    expect(problem(() => loadConfig({ ...nothing, environment: { MILLRACE_REDIS_URL: 'redis://a' } }))).toContain('unknown option')
    expect(problem(() => loadConfig({ ...nothing, environment: { MILLRACE_METRIC_PORT: '9464' } }))).toContain(
      'did you mean MILLRACE_METRICS_PORT',
    )
    // What somebody has set counts, and is told where it is wrong.
    expect(problem(() => loadConfig({ ...nothing, environment: { MILLRACE_BROKERS: 'tcp://kafka:9092' } }))).toContain(
      'is not of the form host:port',
    )
    expect(loadConfig({ ...nothing, environment: { MILLRACE_METRICS_PORT: '9464' } }).config['metrics.port']).toBe(9464)
  })

  it('gives every option its default when nothing is configured', () => {
    const { config, sources } = loadConfig(nothing)
    expect(config['fetch.timeouts.total']).toBe(120_000)
    expect(config['fetch.maxBodyBytes']).toBe(8 * 1024 * 1024)
    expect(config.brokers).toEqual([])
    expect(config['registry.url']).toBeUndefined()
    expect(sources['topics.prefix'].source).toBe('default')
  })

  it('takes the flag before --set, the environment, the file and the default', () => {
    const path = file('fetch: { concurrency: 2 }\ntopics: { prefix: file. }\nretry: { maxAttempts: 3 }\n')
    const environment = { MILLRACE_FETCH_CONCURRENCY: '3', MILLRACE_TOPICS_PREFIX: 'env.' }
    const loaded = loadConfig({ file: path, sets: ['fetch.concurrency=4'], flags: { brokers: 'b:1' }, environment })
    expect(loaded.config['fetch.concurrency']).toBe(4)
    expect(loaded.config['topics.prefix']).toBe('env.')
    expect(loaded.config['retry.maxAttempts']).toBe(3)
    expect(loaded.config.brokers).toEqual(['b:1'])
    expect(loaded.sources['retry.maxAttempts'].where).toMatch(/millrace\.yaml:3:/)
  })

  it('names the nearest option for an unknown key, with the line and column of the key', () => {
    const text = problem(() =>
      loadConfig({
        ...nothing,
        file: file('fetch:\n  concurency: 5\n  timeouts: { connect: 1s, totl: 3s }\nbrokrs:\n  - a:1\npolitenes:\n  defalt: {}\n'),
      }),
    )
    const at = text.split('\n').map((line) => line.replace(/\([^)]*millrace\.yaml:/, '('))
    expect(at).toEqual([
      'CONFIG_UNKNOWN_KEY: unknown option fetch.concurency (2:3); did you mean fetch.concurrency?',
      'unknown option fetch.timeouts.totl (3:28); did you mean fetch.timeouts.total?',
      'unknown option brokrs (4:1); did you mean brokers?',
      'unknown option politenes (6:1); did you mean politeness?',
    ])
  })

  it.each([
    ['a key that is there twice', 'fetch: {}\nfetch: {}\n', /:2:1: the key fetch is there twice$/],
    ['a tab before a key', 'fetch:\n\tconcurrency: 3\n', /:2:1: Tabs are not allowed as indentation$/],
    ['a quote that is not closed', 'fetch:\n  userAgent: "a\n\n', /:2:14: Missing closing "quote$/],
    ['a bracket that is not closed', 'fetch: {\n', /:1:8: Flow map .* end with a }$/],
    ['a second document', 'fetch: {}\n---\nretry: {}\n', /:2:1: the file holds several documents \(---\); expected one$/],
    ['a list as a key', '? [a]\n: 3\n', /:1:\d+: .*keys must be strings$/],
    ['an alias of nothing', 'fetch: *none\n', /: Unresolved alias .*none$/],
  ])('says where %s stands', (_what, text, expected) => {
    expect(problem(() => loadConfig({ ...nothing, file: file(text) }))).toMatch(expected)
  })

  it('refuses a bare number for a duration and tells every problem at once', () => {
    const text = problem(() =>
      loadConfig({ ...nothing, file: file('retry: { firstDelay: 10 }\nfetch: { maxBodyBytes: 8000000, robots: maybe }\n') }),
    )
    expect(text).toContain('retry.firstDelay')
    expect(text).toContain('is not a duration with its unit')
    expect(text).toContain('is not a size with its unit')
    expect(text).toContain('one of obey, ignore')
  })

  it('says a bound in the unit of its option', () => {
    expect(problem(() => loadConfig({ ...nothing, sets: ['kafka.sessionTimeout=5s', 'topics.maxMessageBytes=1KiB'] }))).toBe(
      'CONFIG_INVALID: kafka.sessionTimeout (--set kafka.sessionTimeout): "5s" is not at least 6s\ntopics.maxMessageBytes (--set topics.maxMessageBytes): "1KiB" is not at least 64KiB',
    )
  })

  it.each(['localhost', 'localhost:', 'localhost:9092/', 'http://localhost:9092', 'localhost:99999', 'localhost:0'])(
    'refuses the broker %s, which has no port or more',
    (broker) => {
      expect(problem(() => loadConfig({ ...nothing, sets: [`brokers=kafka.example:9092,${broker}`] }))).toBe(
        `CONFIG_INVALID: brokers: "${broker}" is not of the form host:port, such as localhost:9092, with a port of 1 to 65535`,
      )
    },
  )

  it('refuses more partitions than any broker takes', () => {
    expect(problem(() => loadConfig({ ...nothing, sets: ['topics.partitions.urls=100000'] }))).toContain('is not at most 10000')
  })

  it('refuses an unknown environment variable of ours but not those of others', () => {
    expect(problem(() => loadConfig({ ...nothing, environment: { MILLRACE_FETCH_CONCURENCY: '1', OTHER: 'x' } }))).toContain(
      'did you mean MILLRACE_FETCH_CONCURRENCY?',
    )
  })

  it('has variables that are no options from .env too, where the environment has none', () => {
    const before = process.cwd()
    process.chdir(mkdtempSync(join(tmpdir(), 'millrace-config-')))
    try {
      writeFileSync('.env', 'MILLRACE_NO_INSTALL=1\nAWS_REGION=eu-central-1\n')
      vi.stubEnv('AWS_REGION', 'us-west-2')
      vi.stubEnv('MILLRACE_NO_INSTALL', undefined)
      expect(wholeEnvironment()).toMatchObject({ MILLRACE_NO_INSTALL: '1', AWS_REGION: 'us-west-2' })
    } finally {
      vi.unstubAllEnvs()
      process.chdir(before)
    }
  })

  it('shows both values when two options contradict each other', () => {
    expect(problem(() => loadConfig({ ...nothing, sets: ['retry.firstDelay=2h', 'retry.maxDelay=1h'] }))).toContain(
      'retry.firstDelay (2h) must not be larger than retry.maxDelay (1h)',
    )
  })

  it.each(['bot/1.0\nX: 1', 'bot/1.0\r', 'bot\u0000', 'bot/1.0 \u2192 me'])(
    'refuses %j as user agent, which no request could carry',
    (userAgent) => {
      expect(problem(() => loadConfig({ ...nothing, sets: [`fetch.userAgent=${userAgent}`] }))).toContain(
        `fetch.userAgent ${JSON.stringify(userAgent)} can't be sent`,
      )
    },
  )

  it('says of a % in the credentials of a registry what to write, without them', () => {
    const said = problem(() => loadConfig({ ...nothing, sets: ['registry.url=http://me:50%off@registry:8081'] }))
    expect(said).toBe('CONFIG_INVALID: registry.url has a user or password with a % that begins no escape (write %25 for a percent sign)')
    expect(loadConfig({ ...nothing, sets: ['registry.url=http://me:50%25off@registry:8081'] }).config['registry.url']).toBeDefined()
  })

  it.each([
    ['topics.retention.html=999999999999999d', 'at most 36500d'],
    ['fetch.minFreeDisk=9999999TiB', 'at most 1024TiB'],
    ['topics.maxMessageBytes=200MiB', 'at most 90MiB'],
    ['fetch.maxBodyBytes=100MiB', 'at most 64MiB'],
    ['politeness.breaker.firstPark=2h', 'politeness.breaker.firstPark (2h) must not be larger than politeness.breaker.maxPark (30m)'],
  ])('refuses %s, which nobody could keep', (set, text) => {
    expect(problem(() => loadConfig({ ...nothing, sets: [set] }))).toContain(text)
  })

  it('wants all of a login or nothing', () => {
    const login = ['kafka.sasl.mechanism=plain', 'kafka.sasl.username=me', 'kafka.sasl.password=secret']
    const sets = (bits: number): string[] => login.filter((_, index) => (bits >> index) & 1)
    for (const bits of [1, 2, 3, 4, 5, 6])
      expect(problem(() => loadConfig({ ...nothing, sets: ['brokers=kafka.example:9092', ...sets(bits)] }))).toMatch(
        /kafka\.sasl\.password go together/,
      )
    for (const bits of [0, 7]) expect(() => loadConfig({ ...nothing, sets: ['brokers=kafka.example:9092', ...sets(bits)] })).not.toThrow()
  })

  it('takes the user agent of a block of YAML, whose last line break is none of it', () => {
    const path = file('fetch:\n  userAgent: >\n    bot/1.0\n    (+https://a.test/bot)\n')
    expect(loadConfig({ ...nothing, file: path }).config['fetch.userAgent']).toBe('bot/1.0 (+https://a.test/bot)')
  })

  it('takes a password from the environment and never prints it', () => {
    const path = file(
      'brokers: [kafka.example:9092]\nkafka: { sasl: { mechanism: plain, username: u, password: "${SECRET}" } }\nredis: redis://user:hush@localhost:6379\n',
    )
    const loaded = loadConfig({ ...nothing, file: path, environment: { SECRET: 'hush' } })
    expect(loaded.config['kafka.sasl.password']).toBe('hush')
    expect(JSON.stringify(describeConfig(loaded))).not.toContain('hush')
    const sentinel = 'redis+sentinel://user:hush@localhost:26379/main?db=3&sentinelPassword=hush'
    const text = JSON.stringify(describeConfig(loadConfig({ ...nothing, file: file(`redis: ${sentinel}\n`) })))
    expect(text).not.toContain('hush')
    expect(text).toContain('localhost:26379/main?db=3')
  })

  it('says so when a variable that the file names is missing', () => {
    expect(problem(() => loadConfig({ ...nothing, file: file('redis: ${NOWHERE}\n') }))).toContain('the environment has no NOWHERE')
    const text = 'brokers: ["${HOST}:9092"]\npoliteness: { rules: [{ match: a.example, proxies: ["http://u:${HOST}@p.example:1"] }] }\n'
    const { config } = loadConfig({ ...nothing, environment: { HOST: 'kafka.example' }, file: file(text) })
    expect(config.brokers).toEqual(['kafka.example:9092'])
    expect(config['politeness.rules'][0]?.proxies).toEqual(['http://u:kafka.example@p.example:1'])
    expect(problem(() => loadConfig({ ...nothing, file: file(text) }))).toContain('the environment has no HOST')
    const wrong = problem(() => loadConfig({ ...nothing, environment: { HOST: 'hush' }, file: file(text.replace('match', 'mtch')) }))
    expect(wrong).toMatch(/politeness\.rules .*did you mean match\?/)
    expect(wrong).not.toContain('hush')
  })

  it('says of a variable that would begin a map that it must be quoted, once', () => {
    const text = 'kafka:\n  sasl: { username: u, password: ${SECRET} }\n'
    const told = problem(() => loadConfig({ ...nothing, environment: { SECRET: 's' }, file: file(text) }))
    expect(told).toMatch(/^CONFIG_INVALID: \S+:2:\d+: \$\{SECRET\} within braces or brackets must be quoted: "\$\{SECRET\}"$/)
    const quoted = text.replace('${SECRET}', '"${SECRET}"')
    expect(problem(() => loadConfig({ ...nothing, environment: { SECRET: 's' }, file: file(quoted) }))).not.toContain('quoted')
  })

  it('says where the rule or key of politeness.rules stands that is wrong', () => {
    const rules = (text: string): string =>
      problem(() => loadConfig({ ...nothing, file: file(`politeness:\n  rules:\n    - match: a\n${text}`) }))
    expect(rules('    - { match: b, ratePerSecnd: 1 }\n')).toMatch(/^CONFIG_INVALID: politeness\.rules \(.*:4:19\): rule 2: unknown key/)
    expect(rules('      crawlDelay: 5\n')).toMatch(/:4:7\): rule 1: crawlDelay 5 is not a duration with its unit, like 30s$/)
    expect(rules('    - { key: host }\n')).toMatch(/:4:7\): rule 2: match /)
  })

  it('reads politeness rules with their delay in ms', () => {
    const loaded = loadConfig({
      ...nothing,
      file: file('politeness: { rules: [{ match: "*.a.test", ratePerSecond: 5, crawlDelay: 2s }] }\n'),
    })
    expect(loaded.config['politeness.rules']).toEqual([{ match: '*.a.test', ratePerSecond: 5, crawlDelayMs: 2000 }])
  })

  it('points at line and column of a file that is no YAML', () => {
    expect(problem(() => loadConfig({ ...nothing, file: file('fetch: [1\nretry: 2') }))).toMatch(/millrace\.yaml:\d+:\d+/)
  })

  it('says that a named file is missing', () => {
    expect(problem(() => loadConfig({ ...nothing, file: '/nowhere/at-all.yaml' }))).toContain('CONFIG_UNREADABLE')
  })

  it('gives every option an environment name of its own', () => {
    const names = Object.keys(OPTIONS).map(environmentName)
    expect(new Set(names).size).toBe(names.length)
    expect(environmentName('fetch.maxBodyBytes')).toBe('MILLRACE_FETCH_MAX_BODY_BYTES')
  })
})

describe('values that only fail later', () => {
  it.each([
    ['metrics.port=70000', 'metrics.port (--set metrics.port): "70000" is not at most 65535'],
    ['topics.prefix=a b/', 'topics.prefix "a b/" can\'t begin the name of a topic'],
    ['registry.url=registry', 'is no http or https URL'],
    ['registry.url=localhost:8081', 'is no http or https URL'],
    ['registry.url=htp://user:hush@host', 'CONFIG_INVALID: registry.url is no http or https URL'],
    [`topics.prefix=${'x'.repeat(201)}`, "can't begin the name of a topic"],
  ])('are refused at once: %.40s', (set, expected) => {
    expect(problem(() => loadConfig({ ...nothing, sets: [set] }))).toContain(expected)
  })
})
