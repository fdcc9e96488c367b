import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { decodeContent } from '../../../src/message/content-encoding.ts'
import { firstGzipMember } from '../../../src/message/gzip-member.ts'

const text = 'hello gzip '.repeat(2_000)
const packed = gzipSync(text)
const tail = Buffer.from('<!-- served by cache7 -->')

describe('a gzip body with something behind it', () => {
  it.each([
    ['text', tail],
    ['line ends', Buffer.from('\r\n\r\n')],
    ['one byte', Buffer.from('x')],
  ])('is decoded to the end of what was packed: %s', async (_about, behind) => {
    const content = await decodeContent(Buffer.concat([packed, behind]), 'gzip', 1_000_000)
    expect(content).toMatchObject({ encoding: 'identity', truncated: null, problem: 'tail' })
    expect(content.decoded.toString()).toBe(text)
  })

  it('is decoded through a header with name, comment, extra field and checksum', async () => {
    const header = Buffer.from([0x1f, 0x8b, 8, 2 | 4 | 8 | 16, 0, 0, 0, 0, 0, 3, 2, 0, 1, 2])
    const named = Buffer.concat([header, Buffer.from('a.html\0a comment\0'), Buffer.from([0, 0]), packed.subarray(10), tail])
    expect((await firstGzipMember(named, 1_000_000))?.toString()).toBe(text)
  })

  it('is broken where the packed part is, or where it is larger than the limit', async () => {
    const damaged = Buffer.from(packed)
    damaged[packed.length - 8] = (damaged[packed.length - 8] ?? 0) ^ 1
    expect(await firstGzipMember(Buffer.concat([damaged, tail]), 1_000_000)).toBeUndefined()
    expect(await firstGzipMember(packed.subarray(0, 30), 1_000_000)).toBeUndefined()
    expect(await firstGzipMember(Buffer.concat([packed, tail]), 100)).toBeUndefined()
    expect(await decodeContent(Buffer.concat([damaged, tail]), 'gzip', 1_000_000)).toMatchObject({ truncated: 'encoding' })
  })

  it.each(
    [['', 'not gzip at all', '\x1f\x8b', '\x1f\x8b\x08\x08\0\0\0\0\0\0name without its end', '\x1f\x8b\x08\x04\0\0\0\0\0\0\xff']].flat(),
  )('is none where its header is not whole: %j', async (bytes) =>
    expect(await firstGzipMember(Buffer.from(bytes, 'latin1'), 1_000)).toBeUndefined(),
  )
})
