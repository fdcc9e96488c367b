import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { applyTopics } from '../../src/control/runtime/topics.ts'
import { Deployment } from '../support/deployment.ts'
import { BOOK_1, BOOK_2, caughtUp, range, storePages } from '../support/stored-shop.ts'
import { type StubRegistry, startStubRegistry } from '../support/stub-registry.ts'

/** Can't follow what an operator has registered, though nothing on the log says so. */
const OTHER_SCALE = BOOK_2.replace('scale: 2', 'scale: 3')

let registry: StubRegistry
let deployment: Deployment
/** Subjects that the stage has registered. */
let written: readonly string[]

beforeAll(async () => {
  registry = await startStubRegistry()
  deployment = await Deployment.open({ set: [`registry.url=${registry.url}`] })
  deployment.file('book.yaml', BOOK_1)
  deployment.file('book2.yaml', BOOK_2)
  deployment.file('other.yaml', OTHER_SCALE)
  // Of another name on the log, so that the registry alone knows of the first version.
  deployment.file('log.yaml', BOOK_1.replace('name: book', 'name: shelf'))
  deployment.file('named.yaml', `${BOOK_1.replace('name: book', 'name: named')}topic: ${deployment.prefix}named\n`)
  await deployment.read(async (runtime) => {
    await applyTopics(runtime, [`${deployment.prefix}named`])
    await storePages(runtime, range(10))
  })
  const extract = deployment.start(['extract', '--extractor', 'log.yaml', '--extractor', 'named.yaml'])
  await caughtUp(deployment)
  extract.child.kill('SIGTERM')
  await extract.done
  written = Object.keys(registry.subjects())
  const registered = await deployment.run(['schemas', 'register', 'book.yaml'])
  expect(registered.code, registered.stderr).toBe(0)
})

afterAll(async () => {
  await deployment.close()
  await registry.close()
})

const subject = (): string => `${deployment.prefix}records-io.millrace.records.Book`

interface Compatibility {
  readonly compatibility: { readonly ok: boolean; readonly problems: readonly { readonly path: string; readonly reason: string }[] }
}

describe('the extract stage', () => {
  it('registers the schema of each extractor for the topic of its records, and for no other', () => {
    const records = written.filter((name) => name.includes('io.millrace.records'))
    expect(records.sort()).toEqual([
      `${deployment.prefix}named-io.millrace.records.Named`,
      `${deployment.prefix}records-io.millrace.records.Shelf`,
    ])
  })
})

describe('a version that only the registry knows to be incompatible', () => {
  it('is told by a preview, with field, reason and subject', async () => {
    const fits = await deployment.run(['replay', 'preview', '--extractor', 'book2.yaml', '--json'])
    expect((JSON.parse(fits.stdout) as Compatibility).compatibility).toEqual({ ok: true, problems: [] })
    const result = await deployment.run(['replay', 'preview', '--extractor', 'other.yaml', '--json'])
    expect(result.code, result.stderr).toBe(0)
    const { ok, problems } = (JSON.parse(result.stdout) as Compatibility).compatibility
    expect([ok, problems.map(({ path }) => path)]).toEqual([false, ['data.price']])
    expect(problems[0]?.reason).toBe(
      `a decimal of precision 38 and scale 3 can't be read from a decimal of precision 38 and scale 2 (registered under ${subject()} as version 1)`,
    )
    const text = await deployment.run(['replay', 'preview', '--extractor', 'other.yaml'])
    expect(text.stdout).toContain('schema: data.price: a decimal of precision 38 and scale 3')
  })

  it('is promoted and replayed by nobody, and nothing is changed', async () => {
    const offsets = () =>
      deployment.read(async (runtime) =>
        [...(await runtime.admin.committedOffsets(runtime.groups.extract(), [runtime.topics.html])).values()].map(String),
      )
    const before = await offsets()
    const files = ['--extractor', 'book.yaml', '--extractor', 'other.yaml']
    for (const line of [
      ['promote', 'book:2', ...files],
      ['replay', 'run', '--in-place', '--extractor', 'other.yaml', '--force', 'a test'],
      ['replay', 'run', '--shadow', '--extractor', 'other.yaml'],
    ]) {
      const result = await deployment.run(line)
      expect([line[0], result.code, result.stdout]).toEqual([line[0], 2, ''])
      expect(result.stderr).toContain(`version 2 of book may not follow what is registered under ${subject()}`)
      expect(result.stderr).toContain('version 1: data.price: a decimal of precision 38 and scale 3')
    }
    expect(await offsets()).toEqual(before)
    expect((await deployment.run(['replay', 'status', '--json'])).stdout.trim()).toBe('[]')
    expect(Object.keys(registry.subjects())).not.toContain('book:2')
    const promoted = await deployment.run(['promote', 'book:2', '--extractor', 'book.yaml', '--extractor', 'book2.yaml'])
    expect([promoted.code, promoted.stderr]).toEqual([0, ''])
  })

  it('is not guessed about while the registry is away', async () => {
    registry.failWith(503)
    for (const line of [
      ['replay', 'preview', '--extractor', 'other.yaml'],
      ['promote', 'book:2', '--extractor', 'other.yaml'],
    ])
      expect((await deployment.run(line)).code).toBe(4)
    registry.failWith(undefined)
  })
})

describe('while the registry is away', () => {
  it('what stops a site or a crawl does so, and what only reads control answers', async () => {
    registry.failWith(503)
    for (const line of [
      ['sites', 'pause', 'shop.example'],
      ['sites', 'resume', 'shop.example'],
      ['crawls', 'stop', 'spring'],
      ['replay', 'status'],
      ['topics', 'describe'],
      ['status'],
    ]) {
      const result = await deployment.run(line)
      expect([line, result.code, result.stderr.includes('REGISTRY')]).toEqual([line, 0, false])
    }
    registry.failWith(undefined)
  })
})
