import { type Lineage, lineage } from '../control/inspect/lineage.ts'
import { durationText } from '../kernel/duration-text.ts'
import type { CommandContext } from './context.ts'
import { renderBytes, renderPlace, renderTable, toJson } from './render.ts'
import { singleLine } from './terminal-text.ts'
import { withRuntime } from './with-runtime.ts'

export async function showLineage(context: CommandContext, what: string): Promise<void> {
  const { config } = context.loadConfig()
  await withRuntime(context, config, 'millrace lineage', async (runtime) => {
    const found = await lineage(runtime, what, context.draining)
    if (context.globals.json) await context.out(toJson(found))
    else await writeLineage(context, found)
  })
}

export async function writeLineage(
  context: CommandContext,
  { records, deadLetters, page, pageAt, task, outcomes, timing, traceId }: Lineage,
): Promise<void> {
  const { out } = context
  const line = (text: string): Promise<void> => out(singleLine(text))
  for (const { at, record, tombstone } of records) {
    const replay = record.replayId === null ? '' : `, by replay ${record.replayId}`
    await line(`record   ${record.recordId}  ${record.extractor} version ${record.extractorVersion}${replay}`)
    await line(`         at ${renderPlace(at)}, key ${record.entityKey}`)
    if (tombstone !== null) await line(`         deleted by a tombstone at ${renderPlace(tombstone)}`)
  }
  for (const { partition, offset, info, resolved } of deadLetters) {
    const { code = 'without a code', extractor, replay, message = '' } = info
    const whose = `${extractor === undefined ? '' : `, ${extractor}`}${replay === undefined ? '' : ` of replay ${replay}`}`
    await line(`failure  ${code}${whose}${resolved === undefined ? '' : `, ${resolved.action}`}`)
    await line(`         dead letter ${partition}:${offset}${message === '' ? '' : `: ${message}`}`)
  }
  if (records.length === 0) await line(page === null ? 'record   none is left' : 'record   none is there of this page')
  if (page === null)
    await line(`page     gone by retention (topics.retention.html)${pageAt === null ? '' : `; it was at ${renderPlace(pageAt)}`}`)
  else {
    const { page: stored, at } = page
    await line(
      `page     ${stored.finalUrl}  status ${stored.status}, ${renderBytes(stored.bodyLength)}${cutText(stored.truncated)}, sha256 ${stored.bodySha256}`,
    )
    await line(`         at ${renderPlace(at)}, attempt ${stored.attempt}, from ${stored.remoteAddress ?? 'an unknown address'}`)
    for (const { status, url, location } of stored.redirects) await line(`         redirect ${status}: ${url} -> ${location ?? ''}`)
    for (const { name, value } of stored.headers) await line(`         ${name}: ${value}`)
  }
  if (task === null) await line('task     gone: URLs that are done are deleted after a time (topics.retention.urls)')
  else {
    const { taskId, url, crawlId, depth, parentUrl } = task.task
    await line(`task     ${taskId}  ${url}`)
    await line(
      `         at ${renderPlace(task.at)}, crawl ${crawlId ?? 'none'}, depth ${depth}${parentUrl === null ? '' : `, found on ${parentUrl}`}`,
    )
  }
  if (outcomes.length === 0) await line('outcome  none is left (topics.retention.outcomes)')
  for (const { outcome, at } of outcomes)
    await line(`outcome  ${outcome.kind} ${outcome.reason ?? ''}  attempt ${outcome.attempt}, at ${renderPlace(at)}`)
  await line(`trace    ${traceId ?? 'none'}`)
  await out('')
  if (timing.length === 0) return
  const rows = timing.map(({ step, at, afterMs }) => [step, new Date(at).toISOString(), `+${durationText(Math.max(0, afterMs))}`])
  await out(renderTable([{ title: 'STEP' }, { title: 'AT' }, { title: 'AFTER', align: 'right' }], rows))
  if (page !== null) await out(`\nits bytes: millrace consume html --offset ${page.at.partition}:${page.at.offset} --max 1 --body`)
}

/** What is missing of a body may be why a field is. */
function cutText(truncated: string | null): string {
  return truncated === null ? '' : ` (truncated: ${truncated})`
}
