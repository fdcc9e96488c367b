import type { Extracted } from '../../src/extract/declarative-extractor.ts'
import type { ExtractorDefinition } from '../../src/extract/language/definition.ts'
import { deployed } from './deployed-modules.ts'
import { type PageLoopOptions, runPageLoop } from './page-loop.ts'

/** The same extractor over pages in memory: no Kafka, no process between, nothing unpacked or checked. */
const options = JSON.parse(process.argv[2] ?? '{}') as PageLoopOptions
const [{ readDefinition }, { compileExtractor }, { createPageParser }, { createPageSelectors, PageView }] = await Promise.all([
  deployed.readDefinition(),
  deployed.declarative(),
  deployed.parsePage(),
  deployed.pageView(),
])
const { definition } = readDefinition(options.extractor.text)
if (definition === undefined) throw new Error(`the extractor ${options.extractor.name} can't be read`)
const extractor = compileExtractor(definition)
const parser = createPageParser()
const selectors = createPageSelectors()
const natively = options.native === true ? await nativeReader(definition) : undefined

await runPageLoop(options, (text, url) => {
  const extracted =
    natively?.(text, url) ??
    parser.withPage(text, { mode: 'document' }, ({ root }) => extractor.extract(new PageView(root, url, selectors), url))
  if (!extracted.ok) throw new Error(extracted.message)
  return extracted.items[0]?.data
})

/** Shape: undefined for a page that is for the default parser. */
async function nativeReader(of: ExtractorDefinition): Promise<(text: string, url: string) => Extracted | undefined> {
  const [{ compileNative }, { NativePage }, { nativeParser }] = await Promise.all([
    deployed.compileNative(),
    deployed.nativePage(),
    deployed.nativeParser(),
  ])
  const [native, compilation] = [nativeParser(), compileNative(of)]
  if (!native.ok) throw new Error(native.reason)
  if (!compilation.ok) throw new Error(compilation.reason)
  return (text, url) => {
    const page = NativePage.open(native.parse, text, url)
    if (page === undefined) return undefined
    try {
      return compilation.extractor.extract(page, url)
    } finally {
      page.close()
    }
  }
}
