import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import { amongEachOther, type CheckedSchema, putIntoRegistry } from '../../../../src/control/extractors/schemas.ts'
import { type LoadedExtractor, loadDefinition } from '../../../../src/extract/load-extractors.ts'
import { startStubRegistry } from '../../../support/stub-registry.ts'

const version = (number: number, type: string, name = 'book'): LoadedExtractor =>
  loadDefinition(`${name}${number}.yaml`, `name: ${name}\nversion: ${number}\nfields: { price: { select: p, type: ${type} } }`)

function checkedAs(verdict: CheckedSchema['verdict'], { name, version: number, schema }: LoadedExtractor): CheckedSchema {
  return { subject: 'records-value', schema: schema.name, extractor: `${name}:${number}`, verdict, problems: [] }
}

const verdictsOf = (checked: readonly CheckedSchema[]): string[] => checked.map(({ verdict }) => verdict)
const nobody = (): boolean => false

describe('schemas that are checked together', () => {
  it('tells of versions of one extractor that can not read each other, though nothing has run yet', () => {
    const extractors = [version(2, 'int'), version(1, 'double'), version(3, 'string', 'shop')]
    const checked = amongEachOther(
      extractors.map((extractor) => checkedAs('first', extractor)),
      extractors,
      nobody,
    )
    expect(verdictsOf(checked)).toEqual(['incompatible', 'first', 'first'])
    expect(checked[0]?.problems).toEqual([
      { path: 'data.price', reason: "a union of null, int can't be read from a double (of version 1)", version: undefined },
    ])
  })

  it('calls the later one compatible where it reads the earlier one, and not first', () => {
    const extractors = [version(1, 'int'), version(2, 'double')]
    const checked = extractors.map((extractor) => checkedAs('first', extractor))
    expect(verdictsOf(amongEachOther(checked, extractors, nobody))).toEqual(['first', 'compatible'])
  })

  it('leaves what stands already as it is, and does not tell of a known version twice', () => {
    const [one, two, three] = [version(1, 'double'), version(2, 'int'), version(3, 'int')]
    const known = { path: 'data.price', reason: 'of the log', version: undefined }
    const checked = [checkedAs('registered', one), checkedAs('registered', two), { ...checkedAs('incompatible', three), problems: [known] }]
    const after = amongEachOther(checked, [one, two, three], (_, { version: number }) => number < 3)
    expect(verdictsOf(after)).toEqual(['registered', 'registered', 'incompatible'])
    expect(after[2]?.problems).toEqual([known])
  })

  it('leaves messages of our own as they are', () => {
    const own: CheckedSchema = { subject: 'urls-value', schema: 'UrlTask', extractor: undefined, verdict: 'first', problems: [] }
    expect(amongEachOther([own], [version(1, 'int'), version(2, 'string')], nobody)).toEqual([own])
  })
})

describe('schemas that are registered together', () => {
  it('are registered in the order of their versions, in whatever order they are given', async () => {
    const registry = await startStubRegistry()
    try {
      const { config } = loadConfig({ sets: [`registry.url=${registry.url}`], flags: {}, environment: {} })
      // The second reads what the first has written, and not the other way round.
      const { registered } = await putIntoRegistry(config, [version(2, 'double'), version(1, 'int')])
      const subject = registered?.find(({ schema }) => schema === 'io.millrace.records.Book')?.subject ?? ''
      expect(registry.subjects()[subject]).toHaveLength(2)
      expect((await putIntoRegistry(config, [version(2, 'double'), version(1, 'int')])).registered?.some(({ isNew }) => isNew)).toBe(false)
    } finally {
      await registry.close()
    }
  })
})
