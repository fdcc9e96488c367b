import { createRequire } from 'node:module'
import { errorText, MillraceError } from '../kernel/errors.ts'

/** Packages that Millrace works without; what needs them says so where an extractor asks for it. */
const PACKAGES = {
  article: ['@mozilla/readability', 'linkedom'],
  markdown: ['turndown'],
  native: ['domparser-rs'],
} as const

export type OptionalFeature = keyof typeof PACKAGES

const require = createRequire(import.meta.url)

/** What an operator has to install for a feature, as the end of a sentence; undefined: nothing. */
export function missingPackages(feature: OptionalFeature): string | undefined {
  const missing = PACKAGES[feature].filter((name) => !isInstalled(name))
  if (missing.length === 0) return undefined
  const what = missing.length === 1 ? `the package ${missing[0]}, which is` : `the packages ${missing.join(' and ')}, which are`
  return `needs ${what} not installed: npm install ${missing.join(' ')}`
}

/** A package that is loaded when it is first needed: some of them take longer to load than an extractor takes on a page. */
export function loadOptional(feature: OptionalFeature, name: string): unknown {
  try {
    return require(name) as unknown
  } catch (cause) {
    throw new MillraceError('EXTRACTOR_INVALID', `${feature} can't load the package ${name}: ${errorText(cause)}`, { cause })
  }
}

/** Version of a package as it says itself; undefined: it is not installed, or does not say. */
export function optionalVersion(name: string): string | undefined {
  if (!isInstalled(`${name}/package.json`)) return undefined
  return (require(`${name}/package.json`) as { readonly version?: string }).version
}

function isInstalled(name: string): boolean {
  try {
    require.resolve(name)
    return true
  } catch {
    return false
  }
}
