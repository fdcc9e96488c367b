import { loadOptional } from '../optional-packages.ts'

type Turndown = new (
  options: Readonly<Record<string, string>>,
) => { turndown(html: string): string; remove(names: readonly string[]): unknown }

let convert: ((html: string) => string) | undefined

/** HTML as Markdown (CommonMark), scripts and styles left out. Errors: EXTRACTOR_INVALID where the package is not installed. */
export function htmlToMarkdown(html: string): string {
  convert ??= createConversion()
  return convert(html)
}

function createConversion(): (html: string) => string {
  const Service = loadOptional('markdown', 'turndown') as Turndown
  const service = new Service({ headingStyle: 'atx', codeBlockStyle: 'fenced', bulletListMarker: '-', emDelimiter: '*' })
  service.remove(['script', 'style', 'noscript', 'template'])
  return (html) => service.turndown(html)
}
