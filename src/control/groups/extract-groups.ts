import type { Config } from '../../config/options.ts'
import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import { MillraceError } from '../../kernel/errors.ts'
import { nearestName } from '../../kernel/nearest.ts'
import type { Runtime } from '../runtime/runtime.ts'

/** Names of all extract groups; the common one has none. */
export function extractGroupNames({ config }: Pick<Runtime, 'config'>): readonly (string | undefined)[] {
  return [undefined, ...Object.keys(config['extract.groups'])]
}

/** The same by what they are called on Kafka. */
export function extractGroupsOf(runtime: Pick<Runtime, 'groups' | 'config'>): readonly string[] {
  return extractGroupNames(runtime).map((name) => runtime.groups.extract(name))
}

/** Those of one extract group: all where the group has no name, and no other group asks for them. */
export function extractorsOf(
  { config }: Pick<Runtime, 'config'>,
  all: readonly LoadedExtractor[],
  group: string | undefined,
): readonly LoadedExtractor[] {
  const groups = config['extract.groups']
  if (group === undefined) {
    const elsewhere = new Set(Object.values(groups).flat())
    return all.filter(({ name }) => !elsewhere.has(name))
  }
  const names = groups[group]
  if (names === undefined)
    throw new MillraceError(
      'CONFIG_INVALID',
      `there is no extract group ${group}; extract.groups has ${Object.keys(groups).join(', ') || 'none'}`,
    )
  const missing = missingOf(group, names, all)
  if (missing !== undefined) throw new MillraceError('CONFIG_INVALID', missing)
  return all.filter(({ name }) => names.includes(name))
}

function missingOf(group: string, names: readonly string[], all: readonly LoadedExtractor[]): string | undefined {
  const missing = names.filter((name) => !all.some((extractor) => extractor.name === name))
  return missing.length === 0 ? undefined : `extract.groups.${group} names ${missing.join(', ')}, which no extractor file defines`
}

/** What groups of `extract.groups` lack among these: their workers can't start here, those of the others can. */
export function groupAdvice(config: Config, all: readonly LoadedExtractor[]): readonly string[] {
  return Object.entries(config['extract.groups']).flatMap(([group, names]) => {
    const missing = missingOf(group, names, all)
    return missing === undefined ? [] : [`${missing}: \`extract --group ${group}\` and \`run\` can't start with it`]
  })
}

/** Errors: CONFIG_INVALID where a group of `extract.groups` has an extractor that is not among these. */
export function requireGrouped(config: Config, all: readonly LoadedExtractor[]): void {
  for (const group of Object.keys(config['extract.groups'])) extractorsOf({ config }, all, group)
}

/**
 * The configuration for work with some extractors alone, named in place of those of the file: without the groups that have none of them,
 * whose pages are left to their own workers.
 */
export function narrowedTo(config: Config, extractors: readonly LoadedExtractor[]): Config {
  const names = new Set(extractors.map(({ name }) => name))
  const groups = Object.entries(config['extract.groups']).filter(([, members]) => members.some((name) => names.has(name)))
  return { ...config, 'extract.groups': Object.fromEntries(groups) }
}

/**
 * Id of the group that a replay in place of an extractor is of: the one of `extract.groups` that has it, else the common one. Never that of
 * a candidate, whose records are on a topic of their own. Errors: REPLAY_REFUSED for one that has not got it, or that is not there; USAGE
 * where several have it and none is named.
 */
export function replayGroup(runtime: Pick<Runtime, 'config' | 'groups'>, extractor: LoadedExtractor, group: string | undefined): string {
  const { name } = extractor
  const having = groupsHaving(runtime, name)
  if (group === undefined) {
    if (having.length > 1)
      throw new MillraceError('USAGE', `--group: ${name} is in several extract groups; say which: ${having.join(', ')}`)
    return runtime.groups.extract(having[0])
  }
  if (having.includes(group)) return runtime.groups.extract(group)
  const where = having.length === 0 ? 'the group without a name has it: leave out --group' : `it is in ${having.join(', ')}`
  throw new MillraceError('REPLAY_REFUSED', `extract group ${group} does not have ${name}, by \`extract.groups\`; ${where}`)
}

/**
 * Id of the group whose place a range goes by, for what changes nothing in it. Errors: USAGE for one that is not there; that of a candidate
 * is none of the configuration.
 */
export function rangeGroup(runtime: Pick<Runtime, 'config' | 'groups'>, extractor: string, group: string | undefined): string {
  const names = Object.keys(runtime.config['extract.groups'])
  if (group !== undefined && !names.includes(group) && !/-v[1-9]\d*$/.test(group)) {
    const near = nearestName(group, names)
    const hint = near === undefined ? `extract.groups has ${names.join(', ') || 'none'}` : `did you mean ${near}?`
    throw new MillraceError('USAGE', `--group: there is no extract group ${group}; ${hint}`)
  }
  return runtime.groups.extract(group ?? groupsHaving(runtime, extractor)[0])
}

function groupsHaving({ config }: Pick<Runtime, 'config'>, extractor: string): readonly string[] {
  const groups = Object.entries(config['extract.groups'])
  return groups.filter(([, names]) => names.includes(extractor)).map(([group]) => group)
}
