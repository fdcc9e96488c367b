import { describe, expect, it } from 'vitest'
import { LineCounter, parseDocument } from 'yaml'
import { loadConfig } from '../../../src/config/load.ts'
import { readDefinition } from '../../../src/extract/language/read-definition.ts'
import { errorText } from '../../../src/kernel/errors.ts'
import { yamlFaults, yamlValue } from '../../../src/kernel/yaml-fault.ts'

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

  it.each([
    ['x: 1\ny: "a\nz: 2\n\n', ['2:4 Missing closing "quote']],
    ["x: 'a", ["1:4 Missing closing 'quote"]],
    ['x: "a\\"\n', ['1:4 Missing closing "quote']],
    // What would close the others stands within the quotes.
    ['x: { y: ["a, z] }\n', ['1:10 Missing closing "quote']],
    ['{"x":"a}\n', ['1:6 Missing closing "quote']],
    ['{"x": {"y": 1}\n', ['1:1 Flow map must end with a }']],
    ['x: [1, {y: 2}\n# end\n', ['1:4 Flow sequence']],
    ['x:\r\n  "é": {y: [2, "}]"\r\n', ['2:12 Flow sequence', '2:8 Flow map']],
    ['%YAML 1.2\n\n', ['1:10 Missing directives-end']],
  ])('that is not closed says so where it opens: %j', (text, expected) => {
    const lines = new LineCounter()
    const { errors } = parseDocument(text, { prettyErrors: false, lineCounter: lines })
    const told = yamlFaults(text, errors).map(({ fault, pos }) => `${lines.linePos(pos).line}:${lines.linePos(pos).col} ${fault}`)
    expect(told).toEqual(expected.map((start) => expect.stringContaining(start) as unknown))
  })

  it('that is nested too deeply says so', () => {
    const text = `x: ${'['.repeat(9_000)}${']'.repeat(9_000)}`
    const { errors } = parseDocument(text, { prettyErrors: false })
    expect(yamlFaults(text, errors).map(({ fault }) => fault)).toEqual(['it is nested too deeply to be read'])
  })
})

it('an extractor whose quote is open to its end is refused at the quote', () => {
  expect(readDefinition('name: x\nversion: 1\nfields:\n  a: "h1\n').problems).toEqual([
    { severity: 'error', message: 'Missing closing "quote', line: 4, column: 6 },
  ])
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
