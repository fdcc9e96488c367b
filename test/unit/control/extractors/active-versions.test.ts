import { describe, expect, it } from 'vitest'
import { activeVersions, followPromotions, passedOver, promotions } from '../../../../src/control/extractors/active-versions.ts'
import type { Runtime } from '../../../../src/control/runtime/runtime.ts'
import type { LoadedExtractor } from '../../../../src/extract/load-extractors.ts'
import { RecordingObserver } from '../../../support/embedded.ts'

const loaded = (...names: string[]): LoadedExtractor[] =>
  names.map((text) => ({ name: text.split(':')[0], version: Number(text.split(':')[1]) }) as LoadedExtractor)

const active = (names: string[], promoted: Record<string, number> = {}): string[] =>
  activeVersions(loaded(...names), new Map(Object.entries(promoted))).map(({ name, version }) => `${name}:${version}`)

describe('the version of a name that works', () => {
  it('is the lowest until one is promoted, and then that one', () => {
    expect(active(['book:2', 'book:1', 'shop:4'])).toEqual(['book:1', 'shop:4'])
    expect(active(['book:3', 'book:1', 'book:2'], { book: 2 })).toEqual(['book:2'])
    expect(active(['book:2', 'book:1', 'book:3'], { book: 2 })).toEqual(['book:2'])
  })

  it('is the one that has a file, whatever is promoted', () => {
    expect(active(['book:3'], { book: 2 })).toEqual(['book:3'])
    expect(active(['book:4', 'book:3'], { book: 2 })).toEqual(['book:3'])
    expect(active([], { book: 2 })).toEqual([])
  })
})

describe('a promotion that changes nothing', () => {
  it('is that of a version that has no file here', () => {
    const promoted = new Map([['book', 2]])
    expect(passedOver(loaded('book:1', 'shop:4'), promoted)).toEqual([{ extractor: 'book', promoted: 2, working: 1 }])
    expect(passedOver(loaded('book:3', 'book:4'), promoted)).toEqual([{ extractor: 'book', promoted: 2, working: 3 }])
  })

  it('is none where the file is there, or nothing of that name is', () => {
    const promoted = new Map([['book', 2]])
    expect(passedOver(loaded('book:1', 'book:2'), promoted)).toEqual([])
    expect(passedOver(loaded('shop:4'), promoted)).toEqual([])
    expect(passedOver(loaded('book:1', 'book:2'), new Map())).toEqual([])
  })
})

describe('who follows promotions', () => {
  it('tells of a version without a file at the start and when one is promoted, and of that alone', async () => {
    const promoted = new Map<string, number>([['book', 2]])
    let listener: (event: unknown) => void = () => undefined
    const control = {
      readToEnd: async () => undefined,
      withPrefix: () =>
        [...promoted].map(([name, version]) => ({ kind: 'set', subject: `promoted:${name}`, payload: JSON.stringify({ version }) })),
      subscribe: (each: typeof listener) => {
        listener = each
        return () => undefined
      },
    }
    const observer = new RecordingObserver()
    const runtime = { control: async () => control, observer, onClose: () => undefined } as unknown as Runtime
    const promote = (name: string, version: number): void => {
      promoted.set(name, version)
      listener({ command: { subject: `promoted:${name}` } })
    }
    await followPromotions(runtime, loaded('book:1', 'shop:1'))
    promote('shop', 1)
    expect(observer.events).toEqual([{ name: 'PromotionPassedOver', fields: { extractor: 'book', promoted: 2, working: 1 } }])
    promote('book', 3)
    expect(observer.events.at(-1)?.fields).toEqual({ extractor: 'book', promoted: 3, working: 1 })
  })
})

describe('the promoted versions', () => {
  it('have the time of the last promotion of each, and no subject that was deleted or says nothing', () => {
    const command = (name: string, kind: string, payload: unknown, at: number) => ({
      ...{ id: 'c', by: 'a test', replyTo: null },
      ...{ kind, subject: `promoted:${name}`, payload: JSON.stringify(payload), at },
    })
    const commands = [
      command('shop', 'set', { version: 4 }, 9),
      command('book', 'set', { version: 2 }, 7),
      command('news', 'delete', {}, 8),
      command('old', 'set', {}, 8),
    ]
    expect(promotions({ withPrefix: () => commands })).toEqual([
      { extractor: 'book', version: 2, since: 7 },
      { extractor: 'shop', version: 4, since: 9 },
    ])
  })
})
