import { describe, expect, it } from 'vitest'
import { parseDocument } from 'yaml'
import { loadConfig } from '../../../src/config/load.ts'
import { readDefinition } from '../../../src/extract/language/read-definition.ts'
import { errorText } from '../../../src/kernel/errors.ts'
import { yamlFault, yamlValue } from '../../../src/kernel/yaml-fault.ts'

const readOf = (text: string): ReturnType<typeof yamlValue> => yamlValue(parseDocument(text))

describe('a YAML text', () => {
  it('whose alias stands within what it stands for is refused at the alias', () => {
    const fault = 'the alias *a stands within what it stands for'
    expect(readOf('x: &a [*a]')).toEqual({ ok: false, fault, pos: 7 })
    expect(readOf('x: &a { y: [1, { z: *a }] }')).toEqual({ ok: false, fault, pos: 20 })
    // The name has been given again meanwhile: it stands for the inner one.
    expect(readOf('x: &a [&a 1, *a]')).toEqual({ ok: true, value: { x: [1, 1] } })
    expect(readOf('x: &a [1]\ny: *a')).toEqual({ ok: true, value: { x: [1], y: [1] } })
  })

  it('of ten lines that stands for gigabytes is refused', () => {
    const lines = ['a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]']
    for (const [was, is] of ['ab', 'bc', 'cd'] as const) lines.push(`${is}: &${is} [${Array(10).fill(`*${was}`).join(', ')}]`)
    expect(readOf(lines.join('\n'))).toMatchObject({ ok: false, fault: 'its aliases (*name) stand for too many values' })
  })

  it('that is nested too deeply says so', () => {
    const text = `x: ${'['.repeat(9_000)}${']'.repeat(9_000)}`
    const { errors } = parseDocument(text, { prettyErrors: false })
    expect(errors.map((error) => yamlFault(text, error))).toEqual(['it is nested too deeply to be read'])
  })
})

it.each([
  ['match: &m { hosts: *m }\nfields: { t: title }', 3],
  ['fields: { t: { select: title, transform: &t [{ replace: *t }] } }', 3],
  ['fields: { t: &t [title, *t] }', 3],
  ['fields: { t: { select: title, default: &t [*t] } }', 3],
])('an extractor with %j is refused where the alias stands', (rest, line) => {
  const { problems } = readDefinition(`name: x\nversion: 1\n${rest}`)
  expect(problems).toEqual([
    expect.objectContaining({ line, message: expect.stringMatching(/stands within what it stands for/) as unknown }),
  ])
})

it('a value of the command line that is no YAML, or stands for itself, is told by its option', () => {
  const faultOf = (value: string): string => {
    try {
      loadConfig({ sets: [`politeness.rules=${value}`], flags: {}, environment: {} })
    } catch (error) {
      return errorText(error)
    }
    return 'none'
  }
  expect(faultOf('&a [*a]')).toContain('--set politeness.rules: the alias *a stands within what it stands for')
  expect(faultOf('*a')).toContain('--set politeness.rules: ')
  expect(faultOf('[{')).toContain('--set politeness.rules: ')
  expect(faultOf('[{match: a.test}]')).toBe('none')
})
