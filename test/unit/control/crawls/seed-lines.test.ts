import { describe, expect, it } from 'vitest'
import { readSeed, type SeedText, seedLines } from '../../../../src/control/crawls/produce.ts'

async function read(...chunks: (string | Buffer)[]): Promise<SeedText[]> {
  const lines: SeedText[] = []
  for await (const line of seedLines(
    (async function* () {
      yield* chunks
    })(),
  ))
    lines.push(line)
  return lines
}

const texts = (lines: readonly SeedText[]): string[] => lines.map(({ text }) => text)

describe('lines of a list', () => {
  it('are numbered from 1, blank ones and comments counted', async () => {
    expect(await read('# list\n\n  http://a/  \n')).toEqual([
      { text: '# list', line: 1 },
      { text: '', line: 2 },
      { text: '  http://a/  ', line: 3 },
    ])
  })

  it('end with LF, CRLF or CR, wherever the chunks are cut', async () => {
    const whole = 'a\r\nb\rc\n\r\nd'
    for (let at = 0; at <= whole.length; at += 1) {
      expect(texts(await read(whole.slice(0, at), whole.slice(at)))).toEqual(['a', 'b', 'c', '', 'd'])
    }
  })

  it('may lack the last line end, or end with a lone CR', async () => {
    expect(texts(await read('a\nb'))).toEqual(['a', 'b'])
    expect(texts(await read('a\nb\r'))).toEqual(['a', 'b'])
    expect(await read('')).toEqual([])
  })

  it('keep characters whole that chunks cut, and lose the mark at the beginning', async () => {
    const bytes = Buffer.from('\ufeffhttp://ü/é\n')
    for (let at = 0; at <= bytes.length; at += 1) {
      expect(texts(await read(bytes.subarray(0, at), bytes.subarray(at)))).toEqual(['http://ü/é'])
    }
  })

  it('are cut when one is endless: its beginning is given once, and the next line has its number', async () => {
    const piece = 'x'.repeat(700_000)
    const lines = await read(piece, piece, piece, `${piece}\nhttp://b/\n`)
    expect(lines.map(({ line }) => line)).toEqual([1, 2])
    expect(lines[0]?.text).toHaveLength(1_048_576)
    expect(lines[1]?.text).toBe('http://b/')
  })
})

describe('a list that is no text of ours', () => {
  it.each([
    ['gzip', [0x1f, 0x8b, 0x08, 0x00], 'zcat FILE'],
    ['UTF-16', [0xff, 0xfe, 0x68, 0x00], 'iconv'],
    ['UTF-16', [0xfe, 0xff, 0x00, 0x68], 'iconv'],
  ])('is named, %s, with the way out, wherever the chunks are cut', async (name, bytes, way) => {
    const whole = Buffer.from(bytes)
    for (let at = 0; at <= whole.length; at += 1) {
      const reading = read(whole.subarray(0, at), whole.subarray(at))
      await expect(reading).rejects.toMatchObject({ code: 'USAGE', message: expect.stringContaining(name) })
      await expect(reading).rejects.toThrow(way)
    }
  })
})

describe('a line with white space or a control character within it', () => {
  it.each(['http://f/6 http://f/7', 'http://f/6\thttp://f/7', 'http://f/\u0000'])('is bad: %j', (text) => {
    expect(readSeed({ text, line: 3 })).toMatchObject({ kind: 'bad', bad: { line: 3, reason: expect.stringContaining('one URL a line') } })
  })

  it('is a URL where it was given as an argument, and where the space is at an end', () => {
    expect(readSeed({ text: 'http://f/a b', line: undefined })).toMatchObject({ kind: 'url' })
    expect(readSeed({ text: ' http://f/6\t', line: 3 })).toMatchObject({ kind: 'url' })
  })
})

describe('nothing', () => {
  it('is nothing as a line, and bad where a URL was given', () => {
    for (const text of ['', '  ']) {
      expect(readSeed({ text, line: 3 })).toEqual({ kind: 'nothing' })
      expect(readSeed({ text, line: undefined })).toMatchObject({ kind: 'bad', bad: { reason: expect.stringContaining('""') } })
    }
  })
})
