import { describe, expect, it } from 'vitest'
import {
  type AnnouncedVersion,
  announcedTopics,
  announcedVersions,
  incompatibilities,
  liveVersions,
} from '../../../../src/control/extractors/announced-versions.ts'
import { loadDefinition } from '../../../../src/extract/load-extractors.ts'
import type { Command } from '../../../../src/message/generated/types.ts'

const version = (number: number, type: string): ReturnType<typeof loadDefinition> =>
  loadDefinition('book.yaml', `name: book\nversion: ${number}\nfields: { price: { select: p, type: ${type} } }`)

describe('a version that can not read what older ones wrote', () => {
  const older = [version(1, 'double'), version(2, 'double'), version(3, 'int'), version(5, 'string')]
  const schemas = new Map(older.map(({ schema }) => [schema.fingerprint.toString(), schema]))
  const schemaStore = { byFingerprint: (fingerprint: string | Buffer) => schemas.get(fingerprint.toString()) }
  const known = older.map(
    (extractor): AnnouncedVersion => ({
      version: extractor.version,
      definitionSha256: undefined,
      fingerprint: extractor.schema.fingerprint.toString(),
      required: [],
      topic: undefined,
      onlyBeside: false,
    }),
  )

  it('is told each field and reason once, with the versions that it is about, and nothing of later ones', () => {
    expect(incompatibilities({ schemaStore } as never, version(4, 'int'), known)).toEqual([
      { path: 'data.price', reason: "a union of null, int can't be read from a double (of version 1, 2)" },
    ])
    expect(incompatibilities({ schemaStore } as never, version(4, 'double'), known)).toEqual([])
  })

  it('is bound by none that has run beside live work alone', () => {
    const beside = known.map((each) => ({ ...each, onlyBeside: each.version < 3 }))
    expect(incompatibilities({ schemaStore } as never, version(4, 'int'), beside)).toEqual([])
    expect(incompatibilities({ schemaStore } as never, version(4, 'boolean'), beside)).toHaveLength(1)
  })
})

describe('a version whose records look like those of another one', () => {
  const decimal = (number: number, scale: number): ReturnType<typeof loadDefinition> =>
    loadDefinition('book.yaml', `name: book\nversion: ${number}\nfields: { weight: { select: p, type: decimal, scale: ${scale} } }`)
  const announced = ({ version, schema }: ReturnType<typeof loadDefinition>, onlyBeside: boolean): AnnouncedVersion => ({
    version,
    definitionSha256: undefined,
    fingerprint: schema.fingerprint,
    required: [],
    topic: undefined,
    onlyBeside,
  })
  const [two, three] = [decimal(2, 2), decimal(3, 3)]

  it('may not run where readers would take one for the other, though that one was never live, or is a later one', () => {
    const schemaStore = { byFingerprint: (fingerprint: string) => (fingerprint === two.schema.fingerprint ? two.schema : undefined) }
    expect(three.schema.fingerprint).toBe(two.schema.fingerprint)
    const reason =
      "a decimal of precision 38 and scale 3 can't be read from a decimal of precision 38 and scale 2 (of version 2), and the bytes of both look the same: give the field another name"
    for (const next of [three, decimal(1, 3)])
      expect(incompatibilities({ schemaStore } as never, next, [announced(two, true)])).toEqual([{ path: 'data.weight', reason }])
    expect(incompatibilities({ schemaStore } as never, three, [announced(two, false)])).toHaveLength(1)
    expect(incompatibilities({ schemaStore } as never, decimal(3, 2), [announced(two, true)])).toEqual([])
  })
})

describe('what control tells of versions', () => {
  const told = (about: string, payload: object): Command => ({ subject: about, payload: JSON.stringify(payload) }) as Command
  const commands = [
    told('extractor:book:1', { definitionSha256: 'a', fingerprint: 'f', required: ['title'] }),
    told('extractor:book:2', { definitionSha256: 'b', fingerprint: 'g', required: [], topic: 'books' }),
    told('extractor:book:2026112901', { tried: true }),
    told('extractor:shelf:1', { topic: 'shelves' }),
    told('extractor:odd:1', { topic: 7 }),
  ]
  const control = { withPrefix: (prefix: string) => commands.filter(({ subject }) => subject.startsWith(prefix)) }

  it('has the topic of their records where one was named, and reads what older releases announced', () => {
    expect(announcedVersions(control, 'book')).toMatchObject([
      { version: 1, definitionSha256: 'a', fingerprint: 'f', required: ['title'], topic: undefined },
      { version: 2, definitionSha256: 'b', topic: 'books', onlyBeside: false },
      { version: 2_026_112_901, onlyBeside: true },
    ])
    expect(liveVersions(control, 'book').map((each) => each.version)).toEqual([1, 2])
    expect([...announcedTopics(control)]).toEqual(['books', 'shelves'])
  })
})
