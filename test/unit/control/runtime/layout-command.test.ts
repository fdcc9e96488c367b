import { describe, expect, it } from 'vitest'
import { layoutSource, nextLayout, readLayout } from '../../../../src/control/runtime/layout-command.ts'
import { partitionsOfKey } from '../../../../src/kafka/layout.ts'
import { MillraceError } from '../../../../src/kernel/errors.ts'
import { newCommand } from '../../../../src/message/command.ts'
import type { Command } from '../../../../src/message/generated/types.ts'
import { partitionFor } from '../../../../src/url/partition.ts'

const holding = (payload: unknown): { get: () => Command; requireReadable: () => void } => {
  const command = newCommand({ clock: { now: () => 1 }, kind: 'set', subject: 'layout', payload, by: 'a test' })
  return { get: () => command, requireReadable: () => undefined }
}

describe('the layout that comes next', () => {
  it('keeps the numbers of partitions that a topic has had before, and those of topics that are not named', () => {
    const first = nextLayout(undefined, { urls: 4, html: 4 })
    expect(first).toEqual({ version: 1, partitions: { urls: 4, html: 4 }, former: {} })
    expect(nextLayout(first, { urls: 4 })).toBeUndefined()
    const second = nextLayout(first, { urls: 6, html: 4, books: 2 })
    expect(second).toEqual({ version: 2, partitions: { urls: 6, html: 4, books: 2 }, former: { urls: [4] } })
    expect(nextLayout(second, { urls: 8 })).toEqual({ version: 3, partitions: { urls: 8, html: 4, books: 2 }, former: { urls: [4, 6] } })
  })

  it('holds each number once, where a topic was deleted and made anew too', () => {
    const layout = [8, 4, 8].reduce((held, urls) => nextLayout(held, { urls }), nextLayout(undefined, { urls: 4 }))
    expect(layout).toEqual({ version: 4, partitions: { urls: 8 }, former: { urls: [8, 4] } })
  })
})

describe('a layout on the control topic', () => {
  it('may be one that tells no former numbers', () => {
    const control = holding({ version: 2, partitions: { urls: 4 } })
    expect(readLayout(control)).toEqual({ version: 2, partitions: { urls: 4 }, former: {} })
    expect(layoutSource(control)().countsOf('urls')).toEqual([4])
  })

  it('is refused where its numbers are none', () => {
    expect(() => readLayout(holding({ version: 2, partitions: { urls: 4 }, former: { urls: [0] } }))).toThrow('not valid')
  })

  it('that can not be read is not taken for none', () => {
    const unreadable = new MillraceError('CONTROL_UNREADABLE', 'of a registry')
    const control = {
      get: () => undefined,
      requireReadable: () => {
        throw unreadable
      },
    }
    expect(layoutSource(control)).toThrow(unreadable)
  })

  it.each([['html'], ['constructor']])('knows nothing of topic %s that it does not name', (topic) => {
    const layout = layoutSource(holding({ version: 2, partitions: { urls: 4 }, former: { html: [2] } }))()
    expect(() => layout.countsOf(topic)).toThrow(expect.objectContaining({ code: 'KAFKA_TOPIC_MISSING' }))
  })

  it('tells where the messages of a key can lie: each partition once, the present one last', () => {
    const layout = layoutSource(holding({ version: 3, partitions: { urls: 8 }, former: { urls: [3, 5] } }))()
    for (let index = 0; index < 200; index += 1) {
      const key = `site-${index}.example`
      const found = partitionsOfKey(layout, 'urls', key)
      expect(new Set(found)).toEqual(new Set([3, 5, 8].map((count) => partitionFor(key, count))))
      expect(found.length).toBe(new Set(found).size)
      expect(found.at(-1)).toBe(partitionFor(key, 8))
    }
  })
})
