import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { readDefinition } from '../../../../src/extract/language/read-definition.ts'
import { SCALAR_KINDS } from '../../../../src/extract/values/value-type.ts'

const readme = readFileSync(new URL('../../../../README.md', import.meta.url), 'utf8')
const section = readme.slice(readme.indexOf('\n## Extractors\n'), readme.indexOf('\n## Other languages\n'))
const examples = [...section.matchAll(/`(\{ (?:select|jsonld|microdata|rdfa|meta|link|table|article|any)\b[^`]*\})`/g)].map(
  ([, text = '']) => text,
)

describe('the reference of the extractor language', () => {
  it.each(examples)('has an example that is valid: %s', (example) => {
    expect(readDefinition(`name: t\nversion: 1\nfields:\n  x: ${example}\n`).problems).toEqual([])
  })

  it('has an example of each kind, and names each type and key', () => {
    expect(examples.length).toBeGreaterThan(14)
    for (const name of [
      ...SCALAR_KINDS,
      'list',
      'record',
      'when',
      'match',
      'transform',
      'default',
      'required',
      'any',
      'column',
      'hreflang',
    ])
      expect(section).toContain(`\`${name}`)
  })

  it('has a whole file that is valid', () => {
    const [, file = ''] = /```yaml\n([\s\S]*?)```/.exec(section) ?? []
    expect(readDefinition(file).problems).toEqual([])
  })
})
