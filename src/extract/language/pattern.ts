/**
 * Regular expression of `match`. Shape: `(?i)` at its start ignores case. Unicode mode where the pattern allows it, so that `\p{L}`
 * works; patterns with needless escapes (`\-`) fall back to the older reading. Errors: SyntaxError.
 */
export function compilePattern(pattern: string): RegExp {
  const ignoreCase = pattern.startsWith('(?i)')
  const source = ignoreCase ? pattern.slice(4) : pattern
  const flags = ignoreCase ? 'i' : ''
  try {
    return new RegExp(source, `${flags}u`)
  } catch (error) {
    if (/\\[pPu]\{/.test(source)) throw error
    return new RegExp(source, flags)
  }
}

/**
 * What `match` finds in a text: the whole match where there is no group, else the first group; of alternatives at the top of the pattern
 * the first one of that which matched. Shape: undefined for no match, and for a group that did not take part.
 */
export function firstGroupOf(pattern: RegExp): (text: string) => string | undefined {
  const chosen = chosenOf(pattern.source)
  return (text) => {
    const match = pattern.exec(text)
    return match === null ? undefined : chosen(match)
  }
}

/** Where `firstGroupOf` finds it: from included, to left out. */
export function firstPlaceOf(pattern: RegExp): (text: string) => readonly [number, number] | undefined {
  const chosen = chosenOf(pattern.source)
  const placed = new RegExp(pattern.source, `${pattern.flags}d`)
  return (text) => {
    const indices = placed.exec(text)?.indices
    return indices === undefined ? undefined : chosen(indices)
  }
}

function chosenOf(source: string): <T>(groups: readonly (T | undefined)[]) => T | undefined {
  const firsts = firstOfAlternatives(source)
  return (groups) => {
    if (groups.length === 1) return groups[0]
    return firsts.map((group) => groups[group]).find((group) => group !== undefined)
  }
}

/**
 * What counts in a pattern: an escape and a class, both passed over, then groups that capture, those that do not, their ends, alternatives.
 */
const PIECES = /\\.|\[(?:\\.|[^\]\\])*\]|(?<captures>\((?!\?)|\(\?<(?![=!]))|(?<opens>\()|(?<closes>\))|(?<or>\|)/gs

/** Numbers of the groups that are the first of an alternative at the top. */
function firstOfAlternatives(source: string): readonly number[] {
  const firsts: number[] = []
  let [groups, depth, hasFirst] = [0, 0, false]
  for (const { groups: piece } of source.matchAll(PIECES)) {
    if (piece?.captures !== undefined) {
      groups += 1
      if (!hasFirst) firsts.push(groups)
      hasFirst = true
    }
    if (piece?.captures !== undefined || piece?.opens !== undefined) depth += 1
    else if (piece?.closes !== undefined) depth -= 1
    else if (piece?.or !== undefined && depth === 0) hasFirst = false
  }
  return firsts
}
