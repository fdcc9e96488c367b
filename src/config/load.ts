import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import { isMap, isNode, isScalar, LineCounter, parseDocument } from 'yaml'
import { errorText, MillraceError } from '../kernel/errors.ts'
import { isHeaderValue } from '../kernel/header-field.ts'
import { nearestName } from '../kernel/nearest.ts'
import { type YamlValue, yamlFaults, yamlValue } from '../kernel/yaml-fault.ts'
import { type Config, environmentName, OPTIONS, type OptionDefinition, type OptionPath } from './options.ts'
import { asWritten, parseValue } from './parse-value.ts'
import { parseRegistryUrl } from './registry-url.ts'

/** Where a value came from, from the strongest to the weakest. */
export type ConfigSource = 'flag' | 'set' | 'environment' | '.env' | 'file' | 'default'

export interface LoadedConfig {
  readonly config: Config
  readonly sources: Readonly<Record<OptionPath, { readonly source: ConfigSource; readonly where: string }>>
  /** The file that was read, if any. */
  readonly file: string | undefined
}

export interface ConfigInputs {
  /** Named by the user: must exist. Undefined: `millrace.yaml` where there is one. */
  readonly file?: string
  /** `path=value` as typed. */
  readonly sets: readonly string[]
  /** Option path to what its flag was given. */
  readonly flags: Readonly<Partial<Record<OptionPath, unknown>>>
  readonly environment?: Readonly<Record<string, string | undefined>>
}

interface Candidate {
  readonly raw: unknown
  readonly source: ConfigSource
  readonly where: string
  /** Place of what lies within it. */
  readonly within?: (path: readonly PropertyKey[]) => string
}

/** In the working folder, where no other file is named. */
export const CONFIGURATION_FILE = 'millrace.yaml'

/** The environment of the process, and what `.env` adds to it: for variables that are no options. This file is the only reader of both. */
export function wholeEnvironment(): Readonly<Record<string, string | undefined>> {
  return { ...readDotenv(), ...process.env }
}

/**
 * The configuration, validated once and frozen. Precedence: flag, --set, environment, .env, file, default. Every problem is told, not
 * the first alone. Errors: CONFIG_UNKNOWN_KEY, CONFIG_INVALID, CONFIG_UNREADABLE.
 */
export function loadConfig(inputs: ConfigInputs): LoadedConfig {
  const environment = inputs.environment ?? process.env
  const dotenv = readDotenv()
  const interpolation = { ...dotenv, ...environment }
  const problems: string[] = []
  const candidates = new Map<string, Candidate>()
  const { values: fileValues, file } = readFile(inputs.file, interpolation, problems)
  for (const [path, candidate] of fileValues) candidates.set(path, candidate)
  addEnvironment(candidates, dotenv, '.env', problems)
  addEnvironment(candidates, environment, 'environment', problems)
  for (const set of inputs.sets) addSet(candidates, set, problems)
  for (const [path, raw] of Object.entries(inputs.flags)) {
    if (optionOf(path) === undefined) problems.push(unknownKey(path, 'of the call'))
    else if (raw !== undefined) candidates.set(path, { raw, source: 'flag', where: optionOf(path)?.flag ?? path })
  }

  const values: Record<string, unknown> = {}
  const sources: Record<string, { source: ConfigSource; where: string }> = {}
  for (const path of Object.keys(OPTIONS) as OptionPath[]) {
    const definition: OptionDefinition = OPTIONS[path]
    const candidate = candidates.get(path) ?? { raw: definition.default, source: 'default' as const, where: 'default' }
    sources[path] = { source: candidate.source, where: candidate.where }
    if (candidate.raw === undefined) continue
    const parsed = parseValue(definition, candidate.raw)
    if (parsed.ok) values[path] = parsed.value
    else if (parsed.at !== undefined) problems.push(`${path} (${candidate.within?.(parsed.at) ?? candidate.where}): ${parsed.expected}`)
    else problems.push(`${path} (${candidate.where}): ${shown(definition, candidate.raw)} is not ${parsed.expected}`)
  }
  if (problems.length === 0) problems.push(...crossFieldProblems(values as Config))
  if (problems.length > 0)
    throw new MillraceError(
      problems.some((text) => text.startsWith('unknown')) ? 'CONFIG_UNKNOWN_KEY' : 'CONFIG_INVALID',
      problems.join('\n'),
    )
  return { config: Object.freeze(values) as Config, sources: sources as LoadedConfig['sources'], file }
}

function optionOf(path: string): OptionDefinition | undefined {
  return Object.hasOwn(OPTIONS, path) ? OPTIONS[path as OptionPath] : undefined
}

function unknownKey(path: string, where: string): string {
  if (SECTIONS.has(path)) {
    const example = Object.keys(OPTIONS).find((option) => option.startsWith(`${path}.`))
    return `unknown option ${path} (${where}); it is a section, whose options are named by their whole path, as ${example}`
  }
  const near = nearestName(path, [...Object.keys(OPTIONS), ...SECTIONS])
  return `unknown option ${path} (${where})${near === undefined ? '' : `; did you mean ${near}?`}`
}

/** A secret never stands in an error, the user of a proxy within rules and lists included. */
function shown(definition: OptionDefinition, raw: unknown): string {
  return definition.secret === undefined ? JSON.stringify(raw).replaceAll(/(\w:\/\/)[^"\s]*@/g, '$1***@') : 'the value'
}

function readDotenv(): Record<string, string> {
  const text = readOptional('.env')
  if (text === undefined) return {}
  return parseEnv(text) as Record<string, string>
}

function readOptional(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new MillraceError('CONFIG_UNREADABLE', `can not read ${path}: ${errorText(error)}`, { cause: error })
  }
}

function addEnvironment(
  candidates: Map<string, Candidate>,
  environment: Readonly<Record<string, string | undefined>>,
  source: 'environment' | '.env',
  problems: string[],
): void {
  const known = new Map(Object.keys(OPTIONS).map((path) => [environmentName(path), path]))
  for (const [name, raw] of Object.entries(environment)) {
    if (!name.startsWith('MILLRACE_') || raw === undefined || OWN_VARIABLES.some((own) => name.startsWith(own))) continue
    if (isOfService(name, raw, known.has(name))) continue
    const path = known.get(name)
    if (path === undefined) {
      const near = nearestName(name, known.keys())
      problems.push(`unknown option ${name} (${source})${near === undefined ? '' : `; did you mean ${near}?`}`)
    } else if (optionOf(path)?.fileOnly === true) {
      problems.push(`${path} (${name}): can only be set in the configuration file`)
    } else {
      candidates.set(path, { raw, source, where: source === '.env' ? `.env ${name}` : name })
    }
  }
}

/** What stands before the last name of an option: `politeness`, `politeness.default`. */
const SECTIONS = new Set(
  Object.keys(OPTIONS).flatMap((path) => {
    const names = path.split('.')
    return names.slice(1).map((_, index) => names.slice(0, index + 1).join('.'))
  }),
)

/** Variables that are no options: the installation refusal and what the tests hand over. */
const OWN_VARIABLES = ['MILLRACE_NO_INSTALL', 'MILLRACE_TEST_']

/**
 * What Kubernetes and Docker's links put there for a service that is called millrace, or something that begins so; a port of theirs is a
 * URL, and so none of ours.
 */
function isOfService(name: string, raw: string, isOption: boolean): boolean {
  if (!isOption && /_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)_(PROTO|PORT|ADDR))$/.test(name)) return true
  return /_PORT(_\d+_(TCP|UDP|SCTP))?$/.test(name) && /^(tcp|udp|sctp):\/\/[^/]+:\d+$/.test(raw)
}

function addSet(candidates: Map<string, Candidate>, set: string, problems: string[]): void {
  const separator = set.indexOf('=')
  const path = separator === -1 ? set : set.slice(0, separator)
  if (optionOf(path) === undefined) problems.push(unknownKey(path, '--set'))
  else if (separator === -1) problems.push(`--set ${set}: expected path=value`)
  else {
    const raw = structured(path, set.slice(separator + 1))
    if (raw.ok) candidates.set(path, { raw: raw.value, source: 'set', where: `--set ${path}` })
    else problems.push(`--set ${path}: ${raw.fault}`)
  }
}

/** Rules and groups can be set as JSON or YAML on the command line. */
function structured(path: string, text: string): YamlValue {
  const kind = optionOf(path)?.kind
  if (kind !== 'rules' && kind !== 'groups') return { ok: true, value: text }
  const document = parseDocument(text, { prettyErrors: false })
  const [fault] = yamlFaults(text, document.errors)
  return fault === undefined ? yamlValue(document) : { ok: false, ...fault }
}

function readFile(
  named: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
  problems: string[],
): { values: Map<string, Candidate>; file: string | undefined } {
  const file = named ?? CONFIGURATION_FILE
  const text = readOptional(file)
  const values = new Map<string, Candidate>()
  if (text === undefined) {
    if (named !== undefined) throw new MillraceError('CONFIG_UNREADABLE', `there is no file ${named}`)
    return { values, file: undefined }
  }
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, stringKeys: true })
  const faults = new Set<string>()
  for (const { fault, pos } of yamlFaults(text, document.errors)) {
    const at = lines.linePos(pos)
    // What follows from the first is no fault of its own.
    if (!faults.has(fault)) problems.push(`${file}:${at.line}:${at.col}: ${fault}`)
    faults.add(fault)
  }
  if (document.errors.length > 0) return { values, file }
  const place = (node: unknown): string | undefined => {
    const at = isNode(node) && node.range ? lines.linePos(node.range[0]) : undefined
    return at === undefined ? undefined : `${file}:${at.line}:${at.col}`
  }
  const where = (path: readonly string[]): string => place(document.getIn(path, true)) ?? file
  const whereKey = (path: readonly string[]): string => {
    const map = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true)
    const pair = isMap(map) ? map.items.find(({ key }) => String(isScalar(key) ? key.value : key) === path.at(-1)) : undefined
    return place(pair?.key) ?? where(path)
  }
  /** Of a key that is missing: where it should be. */
  const whereWithin = (path: readonly string[], inner: readonly string[]): string =>
    inner.length === 0 || document.hasIn([...path, ...inner]) ? whereKey([...path, ...inner]) : whereWithin(path, inner.slice(0, -1))
  const walk = (value: unknown, path: readonly string[]): void => {
    const name = path.join('.')
    if (optionOf(name) !== undefined) {
      const raw = interpolate(value, environment, `${name} (${where(path)})`, problems)
      values.set(name, { raw, source: 'file', where: where(path), within: (inner) => whereWithin(path, inner.map(String)) })
      return
    }
    const isGroup = Object.keys(OPTIONS).some((option) => option.startsWith(`${name}.`))
    if (path.length > 0 && !isGroup) {
      problems.push(unknownKey(name, whereKey(path)))
      return
    }
    if (value === null || value === undefined) return
    if (typeof value !== 'object' || Array.isArray(value)) {
      problems.push(`${name === '' ? file : `${name} (${where(path)})`}: expected a map of options`)
      return
    }
    for (const [key, inner] of Object.entries(value)) walk(inner, [...path, key])
  }
  const plain = yamlValue(document)
  if (plain.ok) walk(plain.value, [])
  else {
    const at = lines.linePos(plain.pos)
    problems.push(`${file}:${at.line}:${at.col}: ${plain.fault}`)
  }
  return { values, file }
}

/**
 * `${NAME}` in a text of the file, within lists and maps too, is the variable of that name; a missing one is an error, never an empty
 * password.
 */
function interpolate(
  value: unknown,
  environment: Readonly<Record<string, string | undefined>>,
  where: string,
  problems: string[],
): unknown {
  if (Array.isArray(value)) return value.map((each) => interpolate(each, environment, where, problems))
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, interpolate(inner, environment, where, problems)]))
  if (typeof value !== 'string') return value
  return value.replaceAll(/\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g, (_, name: string) => {
    const found = environment[name]
    if (found === undefined) problems.push(`${where}: the environment has no ${name}`)
    return found ?? ''
  })
}

/** Rules between options; each message shows both values. */
function crossFieldProblems(config: Config): string[] {
  const problems: string[] = []
  const atMost = (small: OptionPath, large: OptionPath): void => {
    if ((config[small] as number) > (config[large] as number)) {
      problems.push(
        `${small} (${asWritten(OPTIONS[small], config[small] as number)}) must not be larger than ${large} (${asWritten(OPTIONS[large], config[large] as number)})`,
      )
    }
  }
  atMost('retry.firstDelay', 'retry.maxDelay')
  atMost('politeness.breaker.firstPark', 'politeness.breaker.maxPark')
  atMost('fetch.timeouts.connect', 'fetch.timeouts.total')
  atMost('fetch.timeouts.headers', 'fetch.timeouts.total')
  atMost('politeness.default.concurrency', 'fetch.concurrency')
  atMost('fetch.maxBodyBytes', 'fetch.maxBytesInFlight')
  const prefix = config['topics.prefix']
  if (!/^[A-Za-z0-9._-]{1,200}$/.test(prefix))
    problems.push(
      `topics.prefix ${JSON.stringify(prefix)} can't begin the name of a topic: letters, digits, dots, underscores and dashes, 200 at most`,
    )
  for (const address of config.brokers.filter((each) => !isAddress(each)))
    problems.push(`brokers: ${JSON.stringify(address)} is not of the form host:port, such as localhost:9092, with a port of 1 to 65535`)
  const userAgent = config['fetch.userAgent']
  if (userAgent !== undefined && !isHeaderValue(userAgent))
    problems.push(
      `fetch.userAgent ${JSON.stringify(userAgent)} can't be sent: no line breaks, no control characters, no letters beyond Latin-1`,
    )
  const registry = config['registry.url'] === undefined ? undefined : parseRegistryUrl(config['registry.url'])
  if (typeof registry === 'string') problems.push(registry)
  problems.push(...tlsProblems(config))
  const unused = config.brokers.length > 0 ? undefined : (['kafka.ssl', 'kafka.sasl.mechanism'] as const).find((path) => config[path])
  if (unused !== undefined)
    problems.push(`${unused} is set and brokers is not: the Kafka that Millrace runs itself has no TLS and no users`)
  const login = (['kafka.sasl.mechanism', 'kafka.sasl.username', 'kafka.sasl.password'] as const).map((path) => config[path] !== undefined)
  if (new Set(login).size > 1) problems.push('kafka.sasl.mechanism, kafka.sasl.username and kafka.sasl.password go together')
  return problems
}

function isAddress(text: string): boolean {
  const port = Number(/^[^:\s]+:(\d{1,5})$/.exec(text)?.[1])
  return port >= 1 && port <= 65_535
}

/** Of a connection that is not made by TLS the files would be read and never used. */
function tlsProblems(config: Config): string[] {
  const isEncrypted = { kafka: config['kafka.ssl'], registry: /^https:/i.test(config['registry.url'] ?? '') }
  const todo = { kafka: 'kafka.ssl is not true', registry: 'registry.url is no https URL' }
  return (['kafka', 'registry'] as const).flatMap((section) => {
    const set = (['ca', 'cert', 'key', 'passphrase'] as const).filter((name) => config[`${section}.tls.${name}`] !== undefined)
    const named = set.map((name) => `${section}.tls.${name}`)
    if (set.length > 0 && !isEncrypted[section]) return [`${named.join(', ')}: set, and ${todo[section]}`]
    if (set.includes('cert') !== set.includes('key')) return [`${section}.tls.cert and ${section}.tls.key go together`]
    return set.includes('passphrase') && !set.includes('key') ? [`${section}.tls.passphrase is set, and ${section}.tls.key is not`] : []
  })
}
