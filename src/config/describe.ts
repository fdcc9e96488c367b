import type { LoadedConfig } from './load.ts'
import { type Config, environmentName, OPTIONS, type OptionDefinition, type OptionPath } from './options.ts'
import type { PolitenessRule } from './politeness-rules.ts'
import { formatDuration, formatSize } from './units.ts'

export interface DescribedOption {
  readonly option: OptionPath
  /** As a person would write it; secrets are hidden. */
  readonly value: string
  readonly source: string
}

/** Every option with its value and where it came from, in the order of the catalogue. */
export function describeConfig(loaded: LoadedConfig): DescribedOption[] {
  return (Object.keys(OPTIONS) as OptionPath[]).map((option) => ({
    option,
    value: shownValue(option, loaded.config),
    source: loaded.sources[option].where,
  }))
}

function shownValue(path: OptionPath, config: Config): string {
  const definition: OptionDefinition = OPTIONS[path]
  const value: unknown = config[path]
  if (value === undefined) return ''
  if (definition.secret === true) return '(hidden)'
  if (definition.secret === 'url' && definition.kind === 'list') return (value as readonly string[]).map(withoutUser).join(',')
  if (definition.secret === 'url') return withoutPassword(String(value))
  if (path === 'politeness.rules') return JSON.stringify(config[path].map(shownRule))
  if (definition.kind === 'duration') return formatDuration(Number(value))
  if (definition.kind === 'size') return formatSize(Number(value))
  if (definition.kind === 'list') return (value as readonly string[]).join(',')
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/**
 * A URL that can be shown: the password in it is hidden, and what stands in its query (`sentinelPassword`) but for the database. A text
 * that is no URL is hidden whole, since nobody knows what it holds.
 */
export function withoutPassword(url: string): string {
  if (!URL.canParse(url)) return '(hidden)'
  const shown = new URL(url)
  if (shown.password !== '') shown.password = '***'
  for (const name of new Set(shown.searchParams.keys())) if (name !== 'db') shown.searchParams.set(name, '***')
  return shown.toString()
}

/** A proxy that can be shown: its user may be as secret as its password. */
function withoutUser(url: string): string {
  return url.replace(/^([a-z0-9+.-]*:\/\/)?.*@/i, '$1***@')
}

function shownRule(rule: PolitenessRule): PolitenessRule {
  return rule.proxies === undefined ? rule : { ...rule, proxies: rule.proxies.map(withoutUser) }
}

/** The table of options in README. */
export function optionsTable(): string {
  const rows = (Object.entries(OPTIONS) as [OptionPath, OptionDefinition][]).map(([path, definition]) => {
    const kind = typeof definition.kind === 'string' ? definition.kind : definition.kind.map((word) => `\`${word}\``).join(' ')
    const flag = definition.flag === undefined ? '' : `\`${definition.flag}\``
    const fallback = definition.default === undefined || definition.default === '' ? '' : `\`${definition.default}\``
    const environment = definition.fileOnly === true ? 'file only' : `\`${environmentName(path)}\``
    return `| \`${path}\` | ${kind} | ${fallback} | ${flag} | ${environment} | ${definition.description} |`
  })
  return ['| option | kind | default | flag | environment | meaning |', '| --- | --- | --- | --- | --- | --- |', ...rows].join('\n')
}
