import { createHash, randomBytes } from 'node:crypto'
import zlib from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { type BodyEncoding, hasZstd, unpack, unpackSync } from '../../../src/message/body-codec.ts'
import { contentCodings, decodeContent, mostPackedBytes } from '../../../src/message/content-encoding.ts'
import { packPageBody, unpackPageBody, unpackPageBodySync } from '../../../src/message/page-body.ts'
import { unzstd, unzstdSync } from '../../../src/message/zstd-decoder.ts'

const html = Buffer.from(`<html>${'<p>the same again</p>'.repeat(60)}</html>`)
const packers: Record<'gzip' | 'br' | 'deflate', (bytes: Buffer) => Buffer> = {
  gzip: (bytes) => zlib.gzipSync(bytes),
  br: (bytes) => zlib.brotliCompressSync(bytes),
  deflate: (bytes) => zlib.deflateSync(bytes),
}
const MAX = 1_000_000
const text = async (wire: Buffer, header: string): Promise<string> => (await decodeContent(wire, header, MAX)).decoded.toString()

describe('a page body', () => {
  it('that came plain is packed, and unpacked to the same bytes', async () => {
    const packed = await packPageBody({ body: html, encoding: 'identity', decoded: html })
    expect(packed.bodyEncoding).toBe(hasZstd() ? 'zstd' : 'br')
    expect(packed.body.length).toBeLessThan(html.length / 10)
    expect(packed).toMatchObject({ bodyLength: html.length, bodySha256: createHash('sha256').update(html).digest('hex') })
    const page = { ...packed, bodyRef: null }
    expect(await unpackPageBody(page)).toEqual({ ok: true, bytes: html })
    expect(unpackPageBodySync(page)).toEqual({ ok: true, bytes: html })
  })

  it('that packing does not make smaller is kept plain', async () => {
    for (const body of [randomBytes(2_000), Buffer.from('short'), Buffer.alloc(0)]) {
      expect(await packPageBody({ body, encoding: 'identity', decoded: body })).toMatchObject({ body, bodyEncoding: 'identity' })
    }
  })

  it.each(['gzip', 'br', 'deflate'] as const)('that came in %s is stored as it came', async (encoding) => {
    const body = packers[encoding](html)
    const packed = await packPageBody({ body, encoding, decoded: html })
    expect(packed).toMatchObject({ body, bodyEncoding: encoding, bodyLength: html.length })
    expect(unpackPageBodySync({ ...packed, bodyRef: null })).toEqual({ ok: true, bytes: html })
  })

  it('that is not what its page says is broken, and never more than it says', async () => {
    const page = { ...(await packPageBody({ body: zlib.gzipSync(html), encoding: 'gzip', decoded: html })), bodyRef: null }
    const cases = [
      [{ ...page, body: page.body.subarray(0, -6) }, 'ends too early'],
      [{ ...page, body: Buffer.from('nonsense') }, 'damaged'],
      [{ ...page, bodyLength: html.length - 1 }, 'decodes to more than'],
      [{ ...page, bodyLength: html.length + 1 }, `decodes to ${html.length} bytes`],
      [{ ...page, bodySha256: 'ab' }, 'its sha256 is'],
      [{ ...page, bodyLength: 2 ** 40 }, 'at most 67108864 are taken'],
    ] as const
    for (const [broken, detail] of cases) {
      expect(unpackPageBodySync(broken)).toMatchObject({ ok: false, reason: 'broken', detail: expect.stringContaining(detail) })
      expect(await unpackPageBody(broken)).toMatchObject({ ok: false, reason: 'broken', detail: expect.stringContaining(detail) })
    }
    expect(unpackPageBodySync({ ...page, bodyEncoding: 'rot13' })).toMatchObject({ ok: false, reason: 'unsupported' })
    expect(unpackPageBodySync({ ...page, body: Buffer.alloc(0), bodyRef: 'blob-1' })).toMatchObject({
      ok: false,
      detail: expect.stringContaining('blob-1'),
    })
  })

  it('that is a bomb makes no more bytes than are taken', async () => {
    const bomb = zlib.gzipSync(Buffer.alloc(8_000_000))
    for (const encoding of ['gzip'] as BodyEncoding[]) {
      expect(await unpack(bomb, encoding, 1_000)).toMatchObject({ problem: 'size', bytes: Buffer.alloc(1_000) })
      expect(unpackSync(bomb, encoding, 1_000).problem).toBe('size')
    }
  })

  it('C182: is cut only beyond the limit, which counts decoded bytes', async () => {
    for (const [length, problem] of [
      [999, null],
      [1_000, null],
      [1_001, 'size'],
    ] as const) {
      const body = Buffer.alloc(length, 'a')
      for (const header of ['', 'gzip', 'br', 'deflate']) {
        const wire = header === '' ? body : packers[header as 'gzip'](body)
        const decoded = await decodeContent(wire, header, 1_000)
        expect([header, length, decoded.truncated, decoded.decoded.length]).toEqual([header, length, problem, Math.min(length, 1_000)])
      }
      expect(unpackSync(zlib.gzipSync(body), 'gzip', 1_000).problem).toBe(problem)
    }
  })
})

describe('a Content-Encoding', () => {
  it('C182: that makes a body longer than the cap is undone, and the body kept as it was', async () => {
    const body = randomBytes(1_000)
    for (const header of ['gzip', 'br', 'deflate'] as const) {
      const wire = packers[header](body)
      expect([header, wire.length > 1_000, wire.length <= mostPackedBytes(1_000)]).toEqual([header, true, true])
      expect(await decodeContent(wire, header, 1_000)).toMatchObject({ body, encoding: 'identity', truncated: null })
    }
    expect(zlib.gzipSync(randomBytes(1_000_000)).length).toBeLessThan(mostPackedBytes(1_000_000))
  })

  it.each([
    ['br', (bytes: Buffer) => zlib.brotliCompressSync(bytes, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } })],
    ['deflate', (bytes: Buffer) => zlib.deflateSync(bytes)],
    ['deflate', (bytes: Buffer) => zlib.deflateRawSync(bytes)],
  ] as const)('whose body ends before its bytes do is stored undone, since other readers fail on it: %s', async (header, pack) => {
    for (const body of [html, Buffer.alloc(1_100_000, 'a'), randomBytes(300_000)]) {
      const wire = Buffer.concat([pack(body), Buffer.from('junkjunkjunk')])
      const { decoded, body: stored, ...content } = await decodeContent(wire, header, 8_000_000)
      expect(content).toEqual({ encoding: 'identity', truncated: null, problem: 'tail' })
      expect([decoded.equals(body), stored.equals(body)]).toEqual([true, true])
    }
  })

  it('is none of a body that begins as an empty one would', async () => {
    const wire = Buffer.from([3, 0, 0xff, 0xfe, 0, 1, 2, 3, 4, 5, 6, 7])
    expect(await decodeContent(wire, 'deflate', MAX)).toMatchObject({ body: wire, encoding: 'identity', truncated: 'undecoded' })
  })

  it.each(['gzip, gzip', 'gzip, br', 'br, deflate', 'deflate, gzip', 'gzip, gzip, br'])(
    'over another one is undone as far as it goes where it is cut: %s',
    async (header) => {
      const body = Buffer.from(Array.from({ length: 4_000 }, (_, index) => `<p>${(index * 7_919) % 10_007}</p>`).join(''))
      const wire = contentCodings(header).reduce<Buffer>((bytes, name) => packers[name as 'gzip'](bytes), body)
      const content = await decodeContent(wire.subarray(0, wire.length / 2), header, MAX)
      expect(content).toMatchObject({ encoding: 'identity', truncated: 'encoding', problem: 'cut' })
      expect(content.decoded.length).toBeGreaterThan(3_000)
      expect(content.body.equals(body.subarray(0, content.decoded.length))).toBe(true)
      const least = await decodeContent(wire.subarray(0, 24), header, MAX)
      expect([least.truncated, least.body.equals(wire.subarray(0, 24)) || body.indexOf(least.body) === 0]).toEqual([
        expect.stringMatching(/encoding|undecoded/),
        true,
      ])
      const capped = await decodeContent(wire, header, 10_000)
      expect(capped.truncated).toBe('size')
      expect(capped.decoded.equals(body.subarray(0, capped.decoded.length))).toBe(true)
    },
  )

  it('C080: is undone, and the body kept as it came', async () => {
    const wire = zlib.gzipSync('hello gzip')
    expect(await decodeContent(wire, 'gzip', MAX)).toEqual({
      body: wire,
      encoding: 'gzip',
      decoded: Buffer.from('hello gzip'),
      truncated: null,
      problem: null,
    })
  })

  it('C082: is known without case and by its older name', async () => {
    const wire = zlib.gzipSync('hello')
    for (const header of ['x-gzip', 'GZIP', ' gzip ', 'gzip, identity', ', gzip,']) expect(await text(wire, header)).toBe('hello')
    expect(contentCodings('X-GZIP, br ,identity')).toEqual(['gzip', 'br'])
  })

  it('C084: that ends too early gives what came, marked', async () => {
    for (const [header, wire] of [
      ['gzip', zlib.gzipSync('hello gzip').subarray(0, -6)],
      ['deflate', zlib.deflateSync('hello gzip').subarray(0, -4)],
      ['br', zlib.brotliCompressSync(html).subarray(0, -4)],
    ] as const) {
      const decoded = await decodeContent(wire, header, MAX)
      expect([header, decoded.truncated, decoded.problem, decoded.encoding]).toEqual([header, 'encoding', 'cut', 'identity'])
      expect(header === 'br' ? html.subarray(0, 100).toString() : 'hello gzip').toContain(decoded.decoded.subarray(0, 100).toString())
      expect(decoded.decoded.length).toBeGreaterThan(0)
    }
  })

  const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH } = zlib.constants
  it.each([
    ['gzip', (bytes: Buffer) => zlib.gzipSync(bytes, { finishFlush: Z_SYNC_FLUSH })],
    ['deflate', (bytes: Buffer) => zlib.deflateSync(bytes, { finishFlush: Z_SYNC_FLUSH })],
    ['deflate', (bytes: Buffer) => zlib.deflateRawSync(bytes, { finishFlush: Z_SYNC_FLUSH })],
    ['br', (bytes: Buffer) => zlib.brotliCompressSync(bytes, { finishFlush: BROTLI_OPERATION_FLUSH })],
  ] as const)('that is damaged gives what came before the damage: %s', async (header, compress) => {
    for (const size of [500, 100_000]) {
      const before = Buffer.from(randomBytes(size / 2).toString('hex'))
      // No block begins like this.
      const { decoded, ...content } = await decodeContent(Buffer.concat([compress(before), Buffer.alloc(1_000, 0xff)]), header, MAX)
      expect(content).toMatchObject({ truncated: 'encoding', encoding: 'identity', problem: 'broken' })
      expect(before.subarray(0, decoded.length).equals(decoded)).toBe(true)
      expect(decoded.length).toBeGreaterThan(size * 0.8)
    }
  })

  it.each([
    ['gzip', zlib.gzipSync, 6],
    ['deflate', zlib.deflateSync, 2],
  ] as const)('whose checksum is wrong gives all of it, as browsers show it, marked: %s', async (header, compress, at) => {
    for (const page of [Buffer.from('hello'), html]) {
      const wire = compress(page)
      wire[wire.length - at] = (wire[wire.length - at] ?? 0) ^ 1
      const { decoded, truncated, problem } = await decodeContent(wire, header, MAX)
      expect([decoded.equals(page), truncated, problem]).toEqual([true, 'encoding', 'broken'])
      expect((await decodeContent(wire, header, 3)).decoded).toHaveLength(3)
    }
  })

  it('C086: that the body is not in passes it as it is, and says so', async () => {
    const plain = Buffer.from('<html>plain</html>')
    for (const [header, problem] of [
      ['gzip', 'mislabelled'],
      ['br', 'mislabelled'],
      ['deflate', 'mislabelled'],
      ['zstd', 'mislabelled'],
      ['utf-8', 'unknown-coding'],
      ['none', 'unknown-coding'],
    ]) {
      expect(await decodeContent(plain, header, MAX)).toEqual({
        body: plain,
        encoding: 'identity',
        decoded: plain,
        truncated: null,
        problem,
      })
    }
  })

  it.each([
    ['a byte order mark', Buffer.from('\ufeff<!doctype html><title>Preis</title>')],
    ['letters that are not of ASCII', Buffer.from('é è <b>prix</b>')],
    ['a page in windows-1251', Buffer.concat(Array.from({ length: 100 }, () => Buffer.from('cff0e8e2e5f2', 'hex')))],
  ])('C086: passes text as it is that begins with %s', async (_about, page) => {
    for (const header of ['br', 'deflate', 'gzip', 'zstd', 'br, gzip']) {
      const wire = header === 'br, gzip' ? zlib.gzipSync(page) : page
      const { decoded, truncated, problem } = await decodeContent(wire, header, MAX)
      expect([header, decoded.equals(page), truncated, problem]).toEqual([header, true, null, 'mislabelled'])
    }
    expect(await decodeContent(page, 'br', 4)).toMatchObject({ decoded: page.subarray(0, 4), truncated: 'size' })
  })

  it('that was cut is no text, however little came', async () => {
    for (const [header, wire] of [
      ['br', zlib.brotliCompressSync(html)],
      ['deflate', zlib.deflateRawSync(html)],
    ] as const) {
      for (let length = 8; length < wire.length; length += 1)
        expect((await decodeContent(wire.subarray(0, length), header, MAX)).problem).toBe('cut')
    }
  })

  it('that packs nothing is no text of one letter: an empty brotli stream is the byte of a semicolon', async () => {
    for (const window of [10, 16, 18, 19, 22, 24]) {
      const wire = zlib.brotliCompressSync(Buffer.alloc(0), { params: { [zlib.constants.BROTLI_PARAM_LGWIN]: window } })
      expect(await decodeContent(wire, 'br', MAX)).toMatchObject({
        encoding: 'br',
        truncated: null,
        problem: null,
        decoded: Buffer.alloc(0),
      })
    }
    expect(await decodeContent(Buffer.from(';;'), 'br', MAX)).toMatchObject({ encoding: 'identity', problem: 'mislabelled' })
  })

  it('names a coding that the body is not in, nor in any that can be told: nothing is decoded', async () => {
    for (const header of ['gzip', 'zstd', 'gzip, gzip', 'deflate, gzip']) {
      const wire = zlib.brotliCompressSync(html)
      expect(await decodeContent(wire, header, MAX)).toEqual({
        body: wire,
        encoding: 'identity',
        decoded: wire,
        truncated: 'undecoded',
        problem: 'mislabelled',
      })
    }
    for (const page of ['caf\xe9', '\xff\xfe<\0p\0>\0', '\x1b$B']) {
      const wire = Buffer.from(page, 'latin1')
      expect(await decodeContent(wire, 'gzip', MAX)).toMatchObject({ decoded: wire, truncated: null, problem: 'mislabelled' })
    }
  })

  it.each([
    ['gzip', zlib.gzipSync(html), ['br', 'deflate', 'zstd', 'utf-8', 'gzip, br', 'none, br']],
    ['deflate', zlib.deflateSync(html), ['br', 'gzip', 'zstd', 'utf-8']],
    ['zstd', Buffer.from('KLUv/SQKUQAAaGVsbG8genN0ZM/bYJw=', 'base64'), ['br', 'deflate', 'gzip', 'none']],
  ] as const)(
    'that is another than that of the body is passed over where the body has a mark of its own: %s',
    async (encoding, wire, headers) => {
      const page = encoding === 'zstd' ? Buffer.from('hello zstd') : html
      for (const header of headers) {
        const content = await decodeContent(wire, header, MAX)
        expect([header, content.truncated, content.problem, content.encoding]).toEqual([header, null, 'mislabelled', encoding])
        expect([content.decoded.equals(page), content.body.equals(wire)]).toEqual([true, true])
        const short = await decodeContent(wire, header, 5)
        expect([header, short.truncated, short.encoding, short.decoded.equals(page.subarray(0, 5))]).toEqual([
          header,
          'size',
          'identity',
          true,
        ])
      }
    },
  )

  it('by which nothing can be decoded leaves the bytes as they came, and says so', async () => {
    const [noise, gzip] = [Buffer.concat([Buffer.from([0xff, 0xfe]), randomBytes(500)]), zlib.gzipSync(html)]
    const damaged = Buffer.concat([gzip.subarray(0, 10), Buffer.alloc(400, 0xff)])
    for (const [header, wire, problem] of [
      ['br', noise, 'broken'],
      ['deflate', noise, 'broken'],
      // The mark of gzip, and nothing behind it that could be undone.
      ['br', damaged, 'broken'],
      ['gzip', damaged, 'broken'],
      ['gzip', gzip.subarray(0, 4), 'cut'],
      ['gzip, gzip, gzip, gzip, gzip, gzip', gzip, 'too-many'],
    ] as const) {
      const content = await decodeContent(wire, header, MAX)
      expect([header, content]).toEqual([header, { body: wire, encoding: 'identity', decoded: wire, truncated: 'undecoded', problem }])
      expect((await decodeContent(wire, header, 3)).decoded).toEqual(wire.subarray(0, 3))
    }
  })

  it('that is named twice and was done once is undone once', async () => {
    for (const [header, wire] of [
      ['gzip, gzip', zlib.gzipSync(html)],
      ['br, br', zlib.brotliCompressSync(html)],
      ['br, gzip', zlib.gzipSync(html)],
    ] as const)
      expect(await decodeContent(wire, header, MAX)).toMatchObject({
        decoded: html,
        encoding: 'identity',
        truncated: null,
        problem: 'mislabelled',
      })
  })

  it('C086: is undone beside names that are none', async () => {
    const wire = zlib.gzipSync('hello')
    for (const header of ['utf-8, gzip', 'gzip, none', 'gzip,utf-8']) {
      expect(await decodeContent(wire, header, MAX)).toMatchObject({ decoded: Buffer.from('hello'), encoding: 'gzip', truncated: null })
      expect(await decodeContent(Buffer.from('<p>'), header, MAX)).toMatchObject({ decoded: Buffer.from('<p>'), problem: 'unknown-coding' })
    }
  })

  it('of a name that nobody knows is undecoded where it is no text; one of a character set is as it is', async () => {
    const wire = zlib.brotliCompressSync(html)
    for (const header of ['brotli', 'compress', 'lzma', 'none, lzma'])
      expect(await decodeContent(wire, header, MAX)).toEqual({
        body: wire,
        encoding: 'identity',
        decoded: wire,
        truncated: 'undecoded',
        problem: 'unknown-coding',
      })
    const image = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0x00, 0x10])
    for (const header of ['none', 'utf-8', 'ISO-8859-1', 'binary'])
      expect(await decodeContent(image, header, MAX)).toMatchObject({ decoded: image, truncated: null, problem: 'unknown-coding' })
  })

  it('in zstd is decoded whether this Node.js has it or not', async () => {
    const hello = Buffer.from('KLUv/SQKUQAAaGVsbG8genN0ZM/bYJw=', 'base64')
    const skipped = Buffer.concat([Buffer.from([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0]), Buffer.from('abc'), hello])
    // A frame of 40 blocks that each repeat one byte 131,072 times.
    const block = Buffer.from([0x02 | ((131_072 << 3) & 0xff), (131_072 >> 5) & 0xff, (131_072 >> 13) & 0xff, 0x78])
    const last = Buffer.from([(block[0] ?? 0) | 1, block[1] ?? 0, block[2] ?? 0, 0x78])
    const bomb = Buffer.concat([Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58]), ...Array<Buffer>(39).fill(block), last])
    const cases = [
      [hello, 'hello zstd', null],
      [Buffer.concat([hello, hello]), 'hello zstdhello zstd', null],
      [skipped, 'hello zstd', null],
      [hello.subarray(0, -6), '', 'cut'],
      // A block of the kind that is reserved.
      [Buffer.concat([hello.subarray(0, 6), Buffer.from([0x17, 0, 0, 1, 1])]), '', 'broken'],
      [bomb, 'x'.repeat(100_000), 'size'],
    ] as const
    for (const [wire, text, problem] of cases) {
      for (const unpacked of [await unzstd(wire, 100_000), unzstdSync(wire, 100_000)]) {
        expect([unpacked.bytes.toString(), unpacked.problem]).toEqual([text, problem])
      }
      const decoded = await decodeContent(wire, 'zstd', 100_000)
      expect([decoded.truncated, decoded.encoding]).toEqual(
        problem === null ? [null, 'zstd'] : [problem === 'size' ? 'size' : 'undecoded', 'identity'],
      )
    }
    expect((await unzstd(bomb, 10_000_000)).bytes.length).toBe(40 * 131_072)
    const page = await packPageBody({ body: hello, encoding: 'zstd', decoded: Buffer.from('hello zstd') })
    const unpacked = unpackPageBodySync({ ...page, bodyRef: null })
    expect(unpacked.ok && unpacked.bytes.toString()).toBe('hello zstd')
  })

  it('C089: of several codings is undone from the last to the first', async () => {
    const wire = zlib.gzipSync(zlib.deflateSync('hello'))
    expect(await decodeContent(wire, 'deflate, gzip', MAX)).toMatchObject({
      decoded: Buffer.from('hello'),
      encoding: 'identity',
      problem: null,
    })
    const five = [1, 2, 3, 4, 5].reduce((bytes) => zlib.gzipSync(bytes), Buffer.from('deep'))
    expect(await text(five, 'gzip,gzip,gzip,gzip,gzip')).toBe('deep')
    expect(await decodeContent(zlib.gzipSync(five), 'gzip,gzip,gzip,gzip,gzip,gzip', MAX)).toMatchObject({
      problem: 'too-many',
      truncated: 'undecoded',
    })
  })

  it('deflate is taken with and without zlib header', async () => {
    expect(await text(zlib.deflateSync('hello'), 'deflate')).toBe('hello')
    expect(await text(zlib.deflateRawSync('hello'), 'deflate')).toBe('hello')
  })

  it('of an empty body is nothing', async () => {
    expect(await decodeContent(Buffer.alloc(0), 'gzip', MAX)).toMatchObject({ decoded: Buffer.alloc(0), truncated: null, problem: null })
  })
})
