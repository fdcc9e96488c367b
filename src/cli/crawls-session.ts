import type { Runtime } from '../control/runtime.ts'
import { type CrawlReport, resumeCrawl, stopCrawl } from '../control/stopped-crawls.ts'
import { requireOrMakeTopics } from '../control/topics.ts'
import { countText, isAre } from '../kernel/count-text.ts'
import { crawlName } from '../message/crawl-name.ts'
import type { CommandContext } from './context.ts'
import { toJson } from './render.ts'
import { withRuntime } from './with-runtime.ts'

export async function stop(context: CommandContext, name: string): Promise<void> {
  await change(context, name, 'stop', stopCrawl, ({ crawl, accepted, final }) => {
    // It may be one that nobody has begun: a typing error must not look like a crawl that was stopped.
    if (accepted === 0) context.note(`no URL of a crawl with the name ${crawl} has been met yet`)
    const open = accepted - final
    const waiting = open === 0 ? '' : `; ${countText(open, 'URL')} of it ${isAre(open)} open, and refused when read`
    return `the crawl ${crawl} is stopped: nothing of it starts until \`millrace crawls resume\`${waiting}`
  })
}

export async function resume(context: CommandContext, name: string): Promise<void> {
  await change(
    context,
    name,
    'resume',
    resumeCrawl,
    ({ crawl }) => `the crawl ${crawl} takes URLs again; those that were refused stay refused`,
  )
}

async function change(
  context: CommandContext,
  name: string,
  verb: string,
  apply: (runtime: Runtime, crawl: string) => Promise<CrawlReport>,
  said: (report: CrawlReport) => string,
): Promise<void> {
  const crawl = crawlName(name, `crawls ${verb}`)
  const { config } = context.loadConfig()
  await withRuntime(context, config, `millrace crawls ${verb}`, async (runtime) => {
    await requireOrMakeTopics(runtime)
    const report = await apply(runtime, crawl)
    const text = said(report)
    await context.out(context.globals.json ? toJson(report) : text)
  })
}
