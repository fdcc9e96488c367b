import { type CrawlReport, setCrawlStopped } from '../control/crawls/stopped-crawls.ts'
import { requireOrMakeTopics } from '../control/runtime/topics.ts'
import { countText, isAre } from '../kernel/count-text.ts'
import { shellWord } from '../kernel/shell-word.ts'
import { crawlName } from '../message/crawl-name.ts'
import type { CommandContext } from './context.ts'
import { toJson } from './render.ts'
import { withRuntime } from './with-runtime.ts'

export async function stop(context: CommandContext, name: string): Promise<void> {
  const report = await set(context, name, true)
  const { crawl, accepted, final } = report
  // Those that wait on their topic are not known yet; a typing error must not look like a crawl that was stopped.
  if (accepted === 0)
    context.note(
      `no URL of a crawl with the name ${crawl} has been read yet: is the name right? any that wait are refused when they are read`,
    )
  const open = accepted - final
  const waiting = open === 0 ? '' : `; ${countText(open, 'URL')} of it ${isAre(open)} open, and refused when read`
  await tell(
    context,
    report,
    `the crawl ${crawl} is stopped: nothing of it starts until \`millrace crawls resume ${shellWord(crawl)}\`${waiting}`,
  )
}

export async function resume(context: CommandContext, name: string): Promise<void> {
  const report = await set(context, name, false)
  await tell(context, report, `the crawl ${report.crawl} takes URLs again; those that were refused stay refused`)
}

async function set(context: CommandContext, name: string, stopped: boolean): Promise<CrawlReport> {
  const command = `crawls ${stopped ? 'stop' : 'resume'}`
  const crawl = crawlName(name, command)
  const { config } = context.loadConfig()
  return withRuntime(context, config, `millrace ${command}`, async (runtime) => {
    await requireOrMakeTopics(runtime)
    return setCrawlStopped(runtime, crawl, stopped)
  })
}

function tell(context: CommandContext, report: CrawlReport, text: string): Promise<void> {
  return context.out(context.globals.json ? toJson(report) : text)
}
