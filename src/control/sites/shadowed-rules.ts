import type { Config } from '../../config/options.ts'
import { coversHosts } from '../../url/glob.ts'

/** Rules of `politeness.rules` that never count, as one before them matches all their hosts. Shape: one sentence each. */
export function shadowedRules(config: Config): string[] {
  const rules = config['politeness.rules'].map(({ match }) => match)
  return rules.flatMap((match, index) => {
    const before = rules.slice(0, index).findIndex((wide) => coversHosts(wide, match))
    if (before === -1) return []
    const remedy = rules[before] === match ? 'make one of the two' : `put ${match} before it`
    return [
      `politeness.rules: rule ${index + 1} (${match}) never counts: rule ${before + 1} (${rules[before]}) matches all its hosts, and the first that matches counts; ${remedy}`,
    ]
  })
}
