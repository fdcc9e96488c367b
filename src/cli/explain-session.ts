import { type ExplainReport, explain } from '../control/inspect/explain.ts'
import { packageVersion } from '../control/package-version.ts'
import { userAgentOf } from '../control/sites/user-agent.ts'
import { durationText } from '../kernel/duration-text.ts'
import type { CommandContext } from './context.ts'
import { renderBytes, renderCount, renderTable, toJson } from './render.ts'
import { singleLine } from './terminal-text.ts'
import { withRuntime } from './with-runtime.ts'

const OUTCOMES_SHOWN = 20

/** `explain`: exit code 0 whatever the answer is. */
export async function explainUrl(context: CommandContext, url: string): Promise<void> {
  const { config } = context.loadConfig()
  await withRuntime(context, config, 'millrace explain', async (runtime) => {
    const report = await explain(runtime, url, { userAgent: userAgentOf(config, packageVersion()), signal: context.draining })
    if (context.globals.json) await context.out(toJson(report))
    else await writeReport(context, report)
  })
}

async function writeReport(context: CommandContext, report: ExplainReport): Promise<void> {
  await context.out(singleLine(report.url))
  if (report.canonicalUrl !== report.url) await context.out(singleLine(`known as ${report.canonicalUrl}`))
  for (const line of report.lines) await context.out(singleLine(`- ${line}`))
  const shown = report.outcomes.slice(-OUTCOMES_SHOWN)
  if (shown.length > 0) {
    await context.out('')
    await context.out(
      renderTable(
        [
          { title: 'OUTCOMES' },
          { title: 'ATTEMPT', align: 'right' },
          { title: 'KIND' },
          { title: 'REASON', flexible: true },
          { title: 'CRAWL', flexible: true },
        ],
        shown.map(({ at, attempt, kind, reason, status, crawlId }) => [
          new Date(at).toISOString().slice(0, 19),
          String(attempt),
          kind,
          reason ?? (status === null ? '' : `status ${status}`),
          crawlId ?? '',
        ]),
      ),
    )
  }
  if (report.outcomes.length > shown.length) await context.out(`and ${renderCount(report.outcomes.length - shown.length)} before these`)
  if (!report.isComplete) context.note('a topic was longer than is searched: what lies further on is not known')
  context.note(`looked at ${renderBytes(report.searchedBytes)} of the topics in ${durationText(report.elapsedMs)}`)
}
