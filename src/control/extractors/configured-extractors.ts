import { readdirSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { CONFIGURATION_FILE } from '../../config/load.ts'
import { problemText } from '../../extract/language/extractor-problem.ts'
import { type LoadedExtractor, loadExtractors } from '../../extract/load-extractors.ts'
import { MillraceError } from '../../kernel/errors.ts'
import { nearestName } from '../../kernel/nearest.ts'
import { compileGlob } from '../../url/glob.ts'

export type { LoadedExtractor }

/**
 * Files of the configuration; a `*` in the name of the file stands for any characters, and never for the configuration itself, which may
 * lie beside them. Errors: CONFIG_INVALID for a pattern without files.
 */
export function extractorFiles(patterns: readonly string[]): string[] {
  return patterns.flatMap((pattern) => {
    if (!basename(pattern).includes('*')) return [resolve(pattern)]
    const folder = resolve(dirname(pattern))
    const matches = compileGlob(basename(pattern))
    const found = listFolder(folder)
      .filter((name) => matches(name) && name !== CONFIGURATION_FILE)
      .sort()
    if (found.length === 0) throw new MillraceError('CONFIG_INVALID', `extractors: no file matches ${pattern}`)
    return found.map((name) => join(folder, name))
  })
}

function listFolder(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (cause) {
    throw new MillraceError('CONFIG_INVALID', `extractors: can not read the folder ${folder}`, { cause })
  }
}

/** The extractors of the configuration, or of the files named. Errors: EXTRACTOR_INVALID, CONFIG_INVALID. */
export function loadConfigured(patterns: readonly string[], signal?: AbortSignal): Promise<readonly LoadedExtractor[]> {
  return loadExtractors(extractorFiles(patterns), signal)
}

/** What is doubtful in them, one line each. */
export function extractorWarnings(extractors: readonly LoadedExtractor[]): readonly string[] {
  return extractors.flatMap(({ file, warnings }) => warnings.map((warning) => problemText(file, warning)))
}

interface FindRequest {
  readonly patterns: readonly string[]
  readonly given: string
  /** The flag, for messages. */
  readonly option: string
  readonly signal?: AbortSignal
}

/** A file, or the name of an extractor of the configuration. Errors: USAGE naming the nearest one; as of loading. */
export async function findExtractor({ patterns, given, option, signal }: FindRequest): Promise<LoadedExtractor> {
  if (/\.(ya?ml|json|[cm]?[jt]s)$/.test(given)) {
    const [extractor] = await loadConfigured([given], signal)
    if (extractor !== undefined) return extractor
  }
  const configured = await loadConfigured(patterns, signal)
  // Of several versions the one that is named, `book:2`, else the newest: it is the one to be looked at.
  const found = configured
    .filter(({ name, version }) => name === given || `${name}:${version}` === given)
    .toSorted((a, b) => b.version - a.version)[0]
  if (found !== undefined) return found
  const names = configured.map(({ name, version }) => `${name}:${version}`)
  const near = nearestName(given, [...names, ...configured.map(({ name }) => name)])
  throw new MillraceError(
    'USAGE',
    `${option}: there is no extractor ${given}${near === undefined ? '' : `; did you mean ${near}?`} (configured: ${names.join(', ') || 'none'}; a file works too)`,
  )
}
