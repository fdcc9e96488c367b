import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest'
import { checkExtractorFile } from '../../src/extract/check.ts'
import { bundleModule } from '../../src/extract/code/bundle.ts'
import { ExtractionProcess } from '../../src/extract/extraction-process.ts'
import { ExtractorHost, type ExtractorHostOptions } from '../../src/extract/extractor-host.ts'
import { type LoadedExtractor, loadDefinition, loadExtractor, loadExtractors } from '../../src/extract/load-extractors.ts'
import { nativeParser } from '../../src/extract/native/native-parser.ts'
import { testExtractor } from '../../src/extract/test-extractor.ts'
import { type Clock, systemClock } from '../../src/kernel/clock.ts'
import type { EventFields, Observer } from '../../src/kernel/observe.ts'
import { readFraming } from '../../src/message/framing.ts'
import { eventually } from '../support/eventually.ts'
import { outcomeOf, testJob, testPage } from '../support/extraction.ts'
import { expectInTime } from '../support/in-time.ts'
import { ManualClock } from '../support/manual-clock.ts'

const folder = mkdtempSync(join(tmpdir(), 'millrace-extract-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const hosts: ExtractorHost[] = []
afterEach(async () => {
  for (const host of hosts.splice(0)) await host.stop({ mode: 'abort', timeoutMs: 0 })
})

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

/** A module that does something on pages whose heading is its word, and gives a record on all others. */
function moduleText(name: string, bodies: Readonly<Record<string, string>>): string {
  const branches = Object.entries(bodies).map(([word, body]) => `if (word === '${word}') { ${body} }`)
  return `import { defineExtractor } from 'millrace'
const world = new Function('return globalThis')()
export default defineExtractor({
  name: '${name}', version: 1,
  schema: { type: 'record', name: 'X', fields: [{ name: 'word', type: 'string' }] },
  extract({ $ }) {
    const word: string = $('h1').text()
    ${branches.join('\n    ')}
    return [{ key: 'k', data: { word } }]
  },
})\n`
}

const title = loadDefinition('title.yaml', 'name: title\nversion: 1\nfields: { title: { select: h1, required: true } }')
const slow = loadDefinition('slow.yaml', "name: slow\nversion: 1\nfields: { x: { select: p, match: '^(a+)+$' } }")

interface Seen {
  readonly event: string
  readonly fields: EventFields
}

async function hostOf(
  extractors: readonly LoadedExtractor[],
  options: Partial<ExtractorHostOptions> = {},
): Promise<{ host: ExtractorHost; seen: Seen[] }> {
  const seen: Seen[] = []
  const emit: Observer['emit'] = (event, fields = {}) => {
    if (event === 'ExtractionProcessReplaced' || event === 'JsonLdNoted') seen.push({ event, fields })
  }
  const observer: Observer = { emit, child: () => observer }
  const host = new ExtractorHost({
    extractors,
    threads: 1,
    pageTimeoutMs: 20_000,
    pageMemoryBytes: 96 * 1024 * 1024,
    clock: systemClock,
    observer,
    ...options,
  })
  hosts.push(host)
  await host.start()
  return { host, seen }
}

const job = (html: string, extractors: readonly string[]): ReturnType<typeof testJob> => testJob(testPage(html), extractors)
const outcomes = async (host: ExtractorHost, html: string, extractors: readonly string[]): Promise<string[]> =>
  (await host.extract(job(html, extractors))).map(outcomeOf)

describe('extraction in processes', () => {
  it('gives framed records, one result per extractor in the order asked for', async () => {
    const { host } = await hostOf([title, slow])
    const results = await host.extract(job('<h1>T</h1><p>aaa', ['slow', 'title']))
    expect(results.map(outcomeOf)).toEqual(['slow: 1 records', 'title: 1 records'])
    const value = results[1]?.kind === 'records' ? results[1].records[0]?.value : undefined
    const framing = readFraming(value)
    expect(framing).toMatchObject({ kind: 'single-object', fingerprint: title.schema.fingerprint })
    expect(title.schema.decode(value as Buffer, framing.bodyStart)).toMatchObject({ data: { title: 'T' }, source: { offset: 41 } })
    expect(await outcomes(host, '<p>', ['title'])).toEqual(['title: EXTRACT_FIELD_MISSING'])
  })

  it('C110, C116: tells how much JSON-LD of a page was repaired, and how much is broken', async () => {
    const names = loadDefinition('names.yaml', 'name: names\nversion: 1\nfields: { name: { jsonld: B.name } }')
    const { host, seen } = await hostOf([names])
    const script = (text: string) => `<script type="application/ld+json">${text}</script>`
    const html = ['{"@type":"A"}', '{bad}', '{"@type":"B","name":"b"};', '{worse}'].map(script).join('')
    expect(await outcomes(host, html, ['names'])).toEqual(['names: 1 records'])
    expect(await outcomes(host, script('{"@type":"A"}'), ['names'])).toEqual(['names: 1 records'])
    const { finalUrl: url } = testPage(html)
    expect(seen).toEqual([
      { event: 'JsonLdNoted', fields: { kind: 'repaired', count: 1, url } },
      { event: 'JsonLdNoted', fields: { kind: 'broken', count: 2, url } },
    ])
  })

  it('gives the whole of a page that is far larger than what a pipe holds, and of the page behind it', async () => {
    const { host } = await hostOf([title])
    const results = ['first', 'second'].map((word) => host.extract(job(`<p>${'x'.repeat(3_000_000)}</p><h1>${word}</h1>`, ['title'])))
    const titles = (await Promise.all(results)).map(([result]) => {
      const value = result?.kind === 'records' ? (result.records[0]?.value ?? Buffer.alloc(0)) : Buffer.alloc(0)
      return title.schema.decode(value, readFraming(value).bodyStart)
    })
    expect(titles).toMatchObject([{ data: { title: 'first' } }, { data: { title: 'second' } }])
  })

  it('ends a pattern that never ends, keeps what others gave, and goes on', async () => {
    const { host, seen } = await hostOf([title, slow], { pageTimeoutMs: 3_000 })
    expect(await outcomes(host, `<h1>T</h1><p>${'a'.repeat(40)}!`, ['title', 'slow'])).toEqual([
      'title: 1 records',
      'slow: EXTRACT_TIMEOUT',
    ])
    expect(seen).toMatchObject([{ event: 'ExtractionProcessReplaced', fields: { reason: 'timeout', extractors: 'slow', offset: 41n } }])
    expect(await outcomes(host, '<h1>T</h1><p>aaa', ['title', 'slow'])).toEqual(['title: 1 records', 'slow: 1 records'])
  })

  it('has the time of a page once more, and no more than once, where the time stood still beyond its end', async () => {
    const pageTimeoutMs = 300
    const endOf = async (lateMs: number): Promise<{ results: string[]; armedCount: number }> => {
      let [mono, armedCount] = [0, 0]
      const timer: Clock['timer'] = (ms, run, options) => {
        if (ms !== pageTimeoutMs) return systemClock.timer(ms, run, options)
        armedCount += 1
        return systemClock.timer(ms, () => {
          mono += ms + lateMs
          run()
        })
      }
      const clock: Clock = { ...systemClock, mono: () => mono, timer }
      const { host } = await hostOf([slow], { pageTimeoutMs, clock })
      return { results: await outcomes(host, `<p>${'a'.repeat(40)}!`, ['slow']), armedCount }
    }
    expect(await endOf(60_000)).toEqual({ results: ['slow: EXTRACT_TIMEOUT'], armedCount: 2 })
    expect(await endOf(0)).toEqual({ results: ['slow: EXTRACT_TIMEOUT'], armedCount: 1 })
  })

  it('ends a pattern of a transform or a condition that never ends', async () => {
    const never = "'^(a+)+$'"
    const definitions = {
      replaces: `x: { select: p, transform: { replace: [${never}, b] } }`,
      splits: `x: { select: p, transform: { split: { match: ${never} } } }`,
      asks: `x: { select: h1, when: { select: p, match: ${never} } }`,
    }
    const slow = Object.entries(definitions).map(([name, fields]) =>
      loadDefinition(`${name}.yaml`, `name: ${name}\nversion: 1\nfields:\n  ${fields}\n`),
    )
    const { host } = await hostOf([title, ...slow], { pageTimeoutMs: 2_000 })
    const names = ['title', ...Object.keys(definitions)]
    expect(await outcomes(host, `<h1>T</h1><p>${'a'.repeat(40)}!`, names)).toEqual([
      'title: 1 records',
      ...Object.keys(definitions).map((name) => `${name}: EXTRACT_TIMEOUT`),
    ])
    expect(await outcomes(host, '<h1>T</h1><p>aaa', names)).toEqual(names.map((name) => `${name}: 1 records`))
  })

  it('gives each page what it gives alone, whatever an extractor has kept of those before', async () => {
    const text = moduleText('keeper', { never: '' }).replace(
      "const word: string = $('h1').text()",
      "const word: string = $('h1').text()\n    kept.push(Array.from({ length: 200_000 }, () => kept.length + 0.5))",
    )
    const path = file('keeper.ts', text.replace('const world', 'const kept: unknown[] = []\nconst world'))
    const { host, seen } = await hostOf([await loadExtractor(path)], { pageMemoryBytes: 32 * 1024 * 1024 })
    for (let page = 0; page < 14; page += 1) expect(await outcomes(host, `<h1>${page}</h1>`, ['keeper'])).toEqual(['keeper: 1 records'])
    expect(seen.length).toBeGreaterThan(0)
    expect(new Set(seen.map(({ fields }) => fields.reason))).toEqual(new Set(['memory']))
  })

  it('costs one failure whatever code does, and nothing of its neighbours', async () => {
    const path = file(
      'wild.ts',
      moduleText('wild', {
        push: 'const list: number[] = []; for (;;) list.push(1)',
        map: 'const map = new Map(); for (let i = 0; ; i++) map.set(i, i)',
        buffer: 'const list: unknown[] = []; for (;;) list.push(Buffer.alloc(10_000_000, 1))',
        exit: 'world.process.exit(0)',
        abort: 'world.process.abort()',
        kill: "world.process.kill(world.process.pid, 'SIGKILL')",
        late: "Promise.reject(new Error('late')); queueMicrotask(() => { throw new Error('later') })",
        throw: "throw new TypeError('no')",
        text: "return 'nonsense' as never",
        data: 'return [{ key: 1, data: { title: 3 } }] as never',
        promise: 'return Promise.resolve([]) as never',
        language: "Array.prototype.map = () => []; JSON.stringify = () => 'x'; world.URL = null",
        forGood: "Object.defineProperty(Array.prototype, 'map', { value: () => [], configurable: false, writable: false })",
        page: "$('h1').remove()",
        spoof: "world.process.send?.({ kind: 'done' })",
      }),
    )
    const { host } = await hostOf([title, await loadExtractor(path)])
    const of = (word: string): Promise<string[]> => outcomes(host, `<h1>${word}</h1>`, ['wild', 'title'])
    const costs = (code: string): string[] => [`wild: ${code}`, 'title: 1 records']
    expect(await of('push')).toEqual(costs('EXTRACT_MEMORY'))
    expect(await of('map')).toEqual(costs('EXTRACT_MEMORY'))
    expect(await of('buffer')).toEqual(costs('EXTRACT_MEMORY'))
    expect(await of('exit')).toEqual(costs('EXTRACT_CRASHED'))
    expect(await of('abort')).toEqual(costs('EXTRACT_CRASHED'))
    expect(await of('kill')).toEqual(costs('EXTRACT_CRASHED'))
    expect(await of('late')).toEqual(costs('1 records'))
    expect(await of('throw')).toEqual(costs('EXTRACT_FAILED'))
    expect(await of('text')).toEqual(costs('EXTRACT_RECORD_INVALID'))
    expect(await of('data')).toEqual(costs('EXTRACT_RECORD_INVALID'))
    expect(await of('promise')).toEqual(costs('EXTRACT_RECORD_INVALID'))
    expect(await of('language')).toEqual(costs('EXTRACT_FAILED'))
    expect(await of('forGood')).toEqual(costs('EXTRACT_CRASHED'))
    expect(await of('page')).toEqual(costs('1 records'))
    expect(await of('spoof')).toEqual(costs('1 records'))
    expect(await of('good')).toEqual(costs('1 records'))
  })

  it('survives a page that needs more memory than there is', async () => {
    // Near its end collections take most of the time, on a busy machine more than a page usually has.
    const { host } = await hostOf([title], { pageMemoryBytes: 48 * 1024 * 1024, pageTimeoutMs: 120_000 })
    expect(await outcomes(host, '<i></i>'.repeat(600_000), ['title'])).toEqual(['title: EXTRACT_MEMORY'])
    expect(await outcomes(host, '<h1>T', ['title'])).toEqual(['title: 1 records'])
  })

  it('does not blame a page for what an earlier one left behind', async () => {
    const path = file('behind.ts', moduleText('behind', { leave: 'Promise.resolve().then(() => world.process.exit(7))' }))
    const { host, seen } = await hostOf([await loadExtractor(path)])
    const results = ['leave', 'good', 'fine'].map((word) => outcomes(host, `<h1>${word}</h1>`, ['behind']))
    expect((await Promise.all(results)).flat()).toEqual(Array(3).fill('behind: 1 records'))
    expect(new Set(seen.map(({ fields }) => fields.reason))).toEqual(new Set(seen.length === 0 ? [] : ['outside']))
  })

  it('spares a page what an earlier one changes in the language after its end', async () => {
    const path = file('later.ts', moduleText('later', { leave: 'queueMicrotask(() => { Array.prototype.map = () => [] })' }))
    const output: string[] = []
    const { host } = await hostOf([title, await loadExtractor(path)], { onOutput: (text) => output.push(text) })
    expect(await outcomes(host, '<h1>leave', ['later'])).toEqual(['later: 1 records'])
    expect(await outcomes(host, '<h1>T', ['title', 'later'])).toEqual(['title: 1 records', 'later: 1 records'])
    const told = 'left behind by an extractor: it changed Array.prototype.map, which all extractors'
    await eventually(() => output.join('').includes(told), { what: told })
  })

  it('does not blame a page for an earlier one whose promises never end', async () => {
    const bodies = { loop: 'const again = (): any => Promise.resolve().then(again); again()' }
    const path = file('promises.ts', moduleText('promises', bodies))
    const { host, seen } = await hostOf([title, await loadExtractor(path)], { pageTimeoutMs: 3_000 })
    expect(await outcomes(host, '<h1>loop', ['promises'])).toEqual(['promises: 1 records'])
    expect(await outcomes(host, '<h1>T', ['title'])).toEqual(['title: 1 records'])
    expect(seen).toMatchObject([{ event: 'ExtractionProcessReplaced', fields: { reason: 'outside', extractors: 'title' } }])
  })

  it('works pages side by side in several processes, all of them', async () => {
    const { host } = await hostOf([title], { threads: 2 })
    const results = await Promise.all(Array.from({ length: 40 }, (_, index) => host.extract(job(`<h1>T${index}</h1>`, ['title']))))
    const titles = results.map(([result]) => {
      const value = result?.kind === 'records' ? result.records[0]?.value : undefined
      return (title.schema.decode(value as Buffer, 10) as { data: { title: string } }).data.title
    })
    expect(titles).toEqual(Array.from({ length: 40 }, (_, index) => `T${index}`))
  })

  it('finishes what it took when it drains, and gives up what it holds when it is aborted', async () => {
    const { host } = await hostOf([title])
    const taken = [1, 2, 3].map(() => host.extract(job('<h1>T</h1>', ['title'])))
    await host.stop({ mode: 'drain', timeoutMs: 10_000 })
    expect((await Promise.all(taken)).flat().map(outcomeOf)).toEqual(['title: 1 records', 'title: 1 records', 'title: 1 records'])
    await expect(host.extract(job('<h1>T</h1>', ['title']))).rejects.toMatchObject({ code: 'ABORTED' })

    const { host: second } = await hostOf([slow])
    const hanging = [1, 2].map(() => second.extract(job(`<p>${'a'.repeat(40)}!`, ['slow'])))
    const rejected = Promise.allSettled(hanging)
    await second.stop({ mode: 'abort', timeoutMs: 0 })
    expect((await rejected).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  })

  it('does not hold up the loop that talks to Kafka', async () => {
    const { host } = await hostOf([title])
    const html = `<h1>T</h1>${'<div><p class=x>text</p></div>'.repeat(20_000)}`
    // CPU time between two beats, not time: a busy machine keeps a beat waiting as well.
    let longestMs = 0
    let last = process.cpuUsage()
    const beat = setInterval(() => {
      const { user, system } = process.cpuUsage(last)
      longestMs = Math.max(longestMs, (user + system) / 1_000)
      last = process.cpuUsage()
    }, 5)
    await Promise.all([1, 2, 3, 4].map(() => host.extract(job(html, ['title']))))
    clearInterval(beat)
    expectInTime(longestMs, 150, 'the longest turn')
  })
})

describe('the native parser in extraction processes', () => {
  const parser = nativeParser()

  it.skipIf(!parser.ok)(
    `may read the pages of each of them, unless it is turned off${parser.ok ? '' : ` (skipped: ${parser.reason})`}`,
    async () => {
      const starts = vi.spyOn(ExtractionProcess, 'start')
      const nativeIn = async (options: Partial<ExtractorHostOptions>): Promise<boolean[]> => {
        starts.mockClear()
        await hostOf([title], options)
        const processes = await Promise.all(starts.mock.results.map(({ value }) => value as ReturnType<typeof ExtractionProcess.start>))
        return processes.map(({ isNative }) => isNative)
      }
      try {
        expect(await nativeIn({ threads: 2 })).toEqual([true, true])
        expect(await nativeIn({ parser: 'native' })).toEqual([true])
        expect(await nativeIn({ parser: 'parse5' })).toEqual([false])
      } finally {
        starts.mockRestore()
      }
    },
  )
})

describe('a code extractor', () => {
  it('is TypeScript that may import millrace and files of its own', async () => {
    file('words.ts', 'export const shout = (text: string): string => text.toUpperCase()\n')
    const path = file(
      'uses.ts',
      `import { defineExtractor } from 'millrace'
import { createHash } from 'node:crypto'
import { shout } from './words.ts'
export default defineExtractor({ name: 'uses', version: 3, match: { hosts: ['shop.example.test'] }, topic: 'own',
  schema: { type: 'record', name: 'Uses', fields: [{ name: 'v', type: 'string' }] },
  extract({ $, url }) { console.log('seen', url); return [{ key: url, data: { v: shout($('h1').text()) + createHash('md5').update('').digest('hex').length } }] } })\n`,
    )
    const extractor = await loadExtractor(path)
    expect(extractor).toMatchObject({ name: 'uses', version: 3, topic: 'own', kind: 'code', match: { hosts: ['shop.example.test'] } })
    let printed = ''
    const report = await testExtractor({
      extractor,
      page: testPage('<h1>word</h1>'),
      source: { topic: 'h', partition: 0, offset: 0n },
      pageTimeoutMs: 10_000,
      pageMemoryBytes: 128 * 1024 * 1024,
      clock: systemClock,
      onOutput: (text) => {
        printed += text
      },
    })
    expect(report).toMatchObject({ matches: true, records: [{ record: { data: { v: 'WORD32' } } }], failure: undefined })
    await eventually(() => printed.includes('seen http://shop.example.test/p/1'), { what: 'what the extractor printed' })

    const before = extractor.definitionSha256
    file('words.ts', 'export const shout = (text: string): string => text.toLowerCase()\n')
    expect((await loadExtractor(path)).definitionSha256).not.toBe(before)
  })

  it('that can not be loaded is refused with file, line and column', async () => {
    const problems = async (name: string, text: string): Promise<string> => {
      const result = await checkExtractorFile(file(name, text))
      return result.ok ? 'ok' : result.problems.join('\n')
    }
    expect(await problems('syntax.ts', 'export default {\n  name: ,\n}')).toMatch(/syntax\.ts:2:9 Unexpected ","/)
    expect(await problems('import.ts', "import { x } from './nowhere.ts'\nexport default x")).toMatch(/import\.ts:1:19 Could not resolve/)
    expect(await problems('throws.ts', "throw new Error('at once')\nexport default {}")).toMatch(
      /throws\.ts:1:7 the module can't be loaded: at once/,
    )
    expect(await problems('exits.js', 'globalThis.process.exit(0)\nexport default {}')).toMatch(
      /exits\.js: the module can't be loaded: it ended/,
    )
    expect(await problems('patches.js', 'Array.prototype.map = () => []\nexport default {}')).toMatch(
      /patches\.js: the module changed Array\.prototype\.map, which all extractors of the process share/,
    )
    expect(await problems('shape.ts', "export default { name: 'Shape', version: 1 }")).toMatch(
      /^\S*shape\.ts:1:1 "schema" is missing\n\S*shape\.ts:1:1 "extract" is missing\n\S*shape\.ts:1:18 "name" is "Shape"; expected a lower case name.*$/,
    )
    expect(
      await problems(
        'schema.js',
        "export default { name: 's', version: 1, schema: { type: 'record', name: 'S', fields: [{ name: 'x', type: 'strin' }] }, extract() { return [] } }",
      ),
    ).toMatch(/schema\.js:1:41 its schema can't be used: .*strin/)
    expect(await problems('nowhere.yaml/x.ts', '').catch((error: unknown) => String(error))).toContain('ENOENT')
  })
})

describe('a module that does not end while it is loaded', () => {
  const spins = 'for (;;) {}\n'

  /** A process that comes up slowly. */
  const UP_AFTER_MS = 40_000

  /** Starts to load it on a clock of the test. */
  async function loading(signal?: AbortSignal): Promise<{ clock: ManualClock; described: Promise<unknown> }> {
    const path = file('spins.ts', spins)
    const { code, sourceMap } = await bundleModule(path)
    const clock = new ManualClock()
    const described = ExtractionProcess.describe(
      { kind: 'code', file: path, shown: 'spins.ts', code, sourceMap },
      {
        pageTimeoutMs: 0,
        pageMemoryBytes: 64 * 1024 * 1024,
        clock,
        onOutput: () => undefined,
        ...(signal === undefined ? {} : { signal }),
      },
    )
    described.catch(() => undefined)
    await clock.advance(UP_AFTER_MS)
    await eventually(() => clock.nextAtMs === UP_AFTER_MS + 15_000, { what: 'the module to run' })
    return { clock, described }
  }

  it('is refused 15 s after it began, however long its process took to come up', async () => {
    const { clock, described } = await loading()
    await clock.advance(14_999)
    expect(clock.armedCount).toBe(1)
    await clock.advance(1)
    await expect(described).rejects.toMatchObject({
      code: 'EXTRACTOR_INVALID',
      message: expect.stringMatching(/^spins\.ts: the module can't be loaded: it was still loading after 15 s \(does it loop/),
    })
  })

  it('ends at once by the signal of who loads it', async () => {
    const stop = new AbortController()
    const { described } = await loading(stop.signal)
    const reason = new Error('stopped')
    stop.abort(reason)
    await expect(described).rejects.toBe(reason)
    await expect(loadExtractor(file('late.ts', spins), stop.signal)).rejects.toBe(reason)
  })
})

describe('extractors together', () => {
  it('have names, and schema names, of their own', async () => {
    const a = file('a.yaml', 'name: a-b\nversion: 1\nfields: { x: p }')
    const b = file('b.yaml', 'name: a-b\nversion: 1\nfields: { x: p }')
    await expect(loadExtractors([a, b])).rejects.toMatchObject({
      code: 'EXTRACTOR_INVALID',
      message: `${b}:1:7 has the name a-b and version 1, which ${a} has already`,
      context: { file: b, line: 1, column: 7 },
    })
    const c = file(
      'c.ts',
      "const name = 'a-b'\nexport default {\n  version: 1, name, schema: { type: 'record', name: 'C', fields: [] }, extract: () => [] }",
    )
    await expect(loadExtractors([a, c])).rejects.toMatchObject({
      message: expect.stringContaining(`${c}:3:15 has the name a-b`),
    })
    await expect(loadExtractors([join(folder, 'none.yaml')])).rejects.toMatchObject({
      message: expect.stringMatching(/none\.yaml: there is no such file$/),
    })
  })
})
