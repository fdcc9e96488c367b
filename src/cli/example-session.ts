import { relative } from 'node:path'
import { type ExampleStep, exampleExtractorFile, runExample } from '../control/example.ts'
import { systemClock } from '../kernel/clock.ts'
import { durationText } from '../kernel/duration-text.ts'
import { writeComparison } from './comparison-summary.ts'
import type { CommandContext } from './context.ts'
import { createProgress } from './progress.ts'
import { progressOptions } from './progress-options.ts'
import { type Column, counted, renderTable, toJson } from './render.ts'
import { runProgress, writeSummary } from './run-summary.ts'

/** The example as a story: each step says what happened, in numbers that were measured in this run. */
export async function showExample(context: CommandContext, version: string): Promise<void> {
  const { config } = context.loadConfig()
  const progress = createProgress(progressOptions(context))
  await runExample({
    config,
    version,
    clock: systemClock,
    observer: context.observer,
    draining: context.draining,
    aborting: context.aborting,
    onStep: async (step) => {
      progress.finish()
      if (context.globals.json) await context.out(toJson(step))
      else await tell(context, step)
    },
    onRunProgress: (state) => progress.update(runProgress(state)),
    onReplayProgress: ({ done, offsets, read, elapsedMs }) =>
      progress.update({
        text: `${counted(read, 'page')} read`,
        ratio: offsets === 0n ? 1 : Number(done) / Number(offsets),
        fields: { done: String(done), elapsedMs },
      }),
  })
}

async function tell(context: CommandContext, step: ExampleStep): Promise<void> {
  const { out } = context
  switch (step.kind) {
    case 'kafka':
      await out(
        `Apache Kafka is up on ${step.brokers.join(', ')} after ${durationText(step.startedMs)}; its log is in ${relative('.', step.dataDir) || step.dataDir}`,
      )
      return
    case 'shop': {
      const paces = Object.entries(step.paces).map(([host, rate]) => `${host} ${rate}/s`)
      await out(`The example shop listens on 127.0.0.1:${step.port}. Pace per host: ${paces.join(', ')}`)
      await out('\n1. Crawl it: URLs, pages and records each on their own topic\n')
      return
    }
    case 'crawled':
      await writeSummary(context, step.report, out)
      await out(`The shop was asked ${counted(step.requests, 'time')}, robots.txt included.`)
      return
    case 'records':
      await tellRecords(context, step)
      return
    case 'replayed':
      await tellReplay(context, step)
      return
    case 'interrupted':
      context.note('stopped')
      return
  }
}

async function tellRecords({ out }: CommandContext, { records }: Extract<ExampleStep, { kind: 'records' }>): Promise<void> {
  const sorted = [...records].sort((a, b) => (a.entityKey < b.entityKey ? -1 : 1))
  const shown = sorted.filter((_, index) => index % Math.max(1, Math.floor(sorted.length / 8)) === 0).slice(0, 8)
  await out(`\n2. ${counted(records.length, 'record')}, some of them:\n`)
  const columns: readonly Column[] = [
    { title: 'KEY' },
    { title: 'TITLE', flexible: true },
    { title: 'PRICE', align: 'right' },
    { title: 'STOCK', align: 'right' },
    { title: 'TAGS', flexible: true },
  ]
  await out(
    renderTable(
      columns,
      shown.map(({ entityKey, data }) => [
        entityKey,
        String(data.title),
        String(data.price),
        String(data.stock),
        (data.tags as string[]).join(', '),
      ]),
    ),
  )
  const first = shown[0]
  if (first === undefined) return
  const { topic, partition, offset } = first.source
  await out(`\nRecord ${first.entityKey} was made of the page at ${topic}, partition ${partition}, offset ${offset}: ${first.url}`)
  await out(`  npx millrace consume html --offset ${partition}:${offset} --max 1 --body`)
}

async function tellReplay(
  context: CommandContext,
  { report, requests, comparison }: Extract<ExampleStep, { kind: 'replayed' }>,
): Promise<void> {
  const { out } = context
  await out('\n3. Replay: the price of articles on sale was wrong (the old price stood first), and the')
  await out('   brand was missing. Version 2 of the extractor reads the same stored pages again:\n')
  await out(
    `${counted(report.pages, 'page')} read, ${counted(report.records, 'record')} in ${durationText(report.elapsedMs)}. Requests that the shop saw meanwhile: ${requests}\n`,
  )
  await writeComparison(context, comparison)
  const file = relative('.', exampleExtractorFile(2))
  await out('\nHow to go on:')
  await out('  npx millrace consume records --max 1          # a record, decoded')
  await out('  npx millrace audit                            # every URL accounted for')
  await out(`  npx millrace replay run --in-place --extractor ${file}`)
  await out('  npx millrace run https://your.site/ --extractor yours.yaml --depth 1 --out records.ndjson')
}
