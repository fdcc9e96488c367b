import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { fetchId, foreignTaskId, h, hopTaskId, linkTaskId, recordId, uuidV7 } from '../../../src/message/ids.ts'
import { isTraceId, makeTraceParent, newTraceId, parseTraceParent } from '../../../src/message/trace.ts'

const vectors = JSON.parse(readFileSync(new URL('../../../schemas/vectors.json', import.meta.url), 'utf8'))

describe('ids', () => {
  it('give the published values of h', () => {
    for (const { parts, hash } of vectors.h) expect(h(...parts)).toBe(hash)
  })

  it('give the published values of the derived ids', () => {
    for (const v of vectors.linkTaskId) expect(linkTaskId(v.crawlId, v.canonicalUrl, v.round)).toBe(v.taskId)
    for (const v of vectors.foreignTaskId) expect(foreignTaskId({ ...v, offset: BigInt(v.offset) })).toBe(v.taskId)
    for (const v of vectors.hopTaskId) expect(hopTaskId(v.parentTaskId, v.attempt, v.hop, v.url)).toBe(v.taskId)
    for (const v of vectors.fetchId) expect(fetchId(v.taskId, v.attempt)).toBe(v.fetchId)
    for (const v of vectors.recordId) expect(recordId(v.fetchId, v.extractor, v.version, v.itemIndex)).toBe(v.recordId)
    expect(Object.keys(vectors)).toEqual(expect.arrayContaining(['linkTaskId', 'foreignTaskId', 'hopTaskId', 'fetchId', 'recordId']))
  })

  it('tell parts apart by their length, and take a number for its decimal text', () => {
    expect(h('ab', 'c')).not.toBe(h('a', 'bc'))
    expect(h('task', 1)).toBe(h('task', '1'))
    expect(h('task', 1n)).toBe(h('task', 1))
  })

  it('of version 7 hold the time, the version and the variant, and sort by time', () => {
    const at = (now: number) => uuidV7({ now: () => now }, () => Buffer.alloc(10, 0xff))
    expect(at(0x0123456789ab)).toBe('01234567-89ab-7fff-bfff-ffffffffffff')
    expect(at(1_000) < at(1_001)).toBe(true)
    expect(uuidV7({ now: () => 5 })).not.toBe(uuidV7({ now: () => 5 }))
  })
})

describe('traces', () => {
  it('are read back from what was made', () => {
    const traceId = newTraceId()
    expect(parseTraceParent(makeTraceParent(traceId))).toMatchObject({ traceId, sampled: true })
    expect(parseTraceParent(makeTraceParent(traceId, false))).toMatchObject({ traceId, sampled: false })
  })

  it('are never all zero', () => {
    expect(isTraceId(newTraceId((size) => Buffer.alloc(size)))).toBe(true)
    expect(parseTraceParent(makeTraceParent(newTraceId(), true, (size) => Buffer.alloc(size)))).toBeDefined()
  })

  it.each([
    undefined,
    '',
    'x',
    '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7',
    '00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01',
    '00-00000000000000000000000000000000-00f067aa0ba902b7-01',
    '00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01',
    'ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x',
  ])('that are no trace are refused: %s', (text) => {
    expect(parseTraceParent(text)).toBeUndefined()
  })

  it('of a later version are read by the fields that are known', () => {
    expect(parseTraceParent('01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more')).toEqual({
      traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
      spanId: '00f067aa0ba902b7',
      sampled: true,
    })
  })
})
