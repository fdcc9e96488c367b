import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'

/** A page that the bench site gives, and what whoever fetched it must have. */
export interface BenchPage {
  readonly body: Buffer
  readonly packed: Buffer
  readonly sha256: string
}

const WORDS =
  'the of and a to in is you that it he was for on are as with his they at be this have from or one had by word but not what all were we when your can said there use an each which she do how their if will up other about out many then them these so some her would make like him into time has look two more write go see number no way could people my than first water been call who oil its now find long down day did get come made may part over new sound take only little work know place year live me back give most very after thing our just name good sentence man think say great where help through much before line right too mean old any same tell boy follow came want show also around form three small set put end does another well large must big even such because turn here why ask went men read need land different home us move try kind hand picture again change off play spell air away animal house point page letter mother answer found study still learn should america world'.split(
    ' ',
  )

/**
 * The pages of the bench site: HTML of about 61 KB, the mean of the corpus in use when the goals were set, that packs to about a fifth
 * by gzip. Made by arithmetic, so that every process has the same ones without reading a file.
 */
export function benchPages(count = 20, bytes = 61_000): BenchPage[] {
  return Array.from({ length: count }, (_, index) => {
    const body = Buffer.from(pageText(index, bytes), 'utf8')
    return { body, packed: gzipSync(body), sha256: createHash('sha256').update(body).digest('hex') }
  })
}

/** Which page an address of the bench site has. Shape: `/NUMBER`, and a query that says nothing. */
export function pageIndex(path: string, count: number): number {
  return Number.parseInt(path.slice(1), 10) % count
}

function pageText(seed: number, bytes: number): string {
  let state = (seed + 1) * 2_654_435_761
  const next = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.floor((state / 4_294_967_296) * below)
  }
  const parts = [`<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Page ${seed}</title></head><body><h1>Page ${seed}</h1>`]
  let length = parts[0]?.length ?? 0
  while (length < bytes - 200) {
    const words = Array.from({ length: 12 + next(20) }, () => WORDS[next(WORDS.length)])
    const part = `<div class="item item-${next(40)}"><p>${words.join(' ')}.</p><a href="/catalogue/${next(100_000)}.html">${words[0]}</a></div>\n`
    parts.push(part)
    length += part.length
  }
  parts.push('</body></html>')
  return parts.join('')
}
