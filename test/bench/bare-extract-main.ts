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

await runPageLoop(options, (text, url) =>
  parser.withPage(text, { mode: 'document' }, ({ root }) => {
    const extracted = extractor.extract(new PageView(root, url, selectors), url)
    if (!extracted.ok) throw new Error(extracted.message)
    return extracted.items[0]?.data
  }),
)
