import { load } from 'cheerio'
import { deployed } from './deployed-modules.ts'
import { type PageLoopOptions, runPageLoop } from './page-loop.ts'

/** What one writes first: `cheerio.load` and ten selectors for every page. It reads a text as the stage does, so that records are equal. */
const options = JSON.parse(process.argv[2] ?? '{}') as PageLoopOptions
const { nodeText } = await deployed.nodeText()

function collapse(value: string | undefined): string | null {
  const text = value?.replace(/\s+/g, ' ').trim() ?? ''
  return text === '' ? null : text
}

function listOf(values: readonly (string | undefined)[]): string[] | null {
  const texts = values.flatMap((value) => collapse(value) ?? [])
  return texts.length === 0 ? null : texts
}

await runPageLoop(options, (html) => {
  const $ = load(html)
  return {
    title: collapse(
      $('title')
        .toArray()
        .slice(0, 1)
        .map((element) => nodeText(element))[0],
    ),
    canonical: collapse($('link[rel=canonical]').attr('href')),
    description: collapse($('meta[name=description]').attr('content')),
    image: collapse($('meta[property="og:image"]').attr('content')),
    language: collapse($('html').attr('lang')),
    heading: collapse(
      $('h1')
        .toArray()
        .slice(0, 1)
        .map((element) => nodeText(element))[0],
    ),
    links: listOf(
      $('a[href]')
        .toArray()
        .map((element) => element.attribs.href),
    ),
    images: listOf(
      $('img[src]')
        .toArray()
        .map((element) => element.attribs.src),
    ),
    subheadings: listOf(
      $('h2, h3')
        .toArray()
        .map((element) => nodeText(element)),
    ),
    paragraphs: listOf(
      $('p')
        .toArray()
        .map((element) => nodeText(element)),
    ),
  }
})
