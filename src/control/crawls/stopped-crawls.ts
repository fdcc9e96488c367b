import type { ControlLog } from '../../kafka/control-log.ts'
import { MillraceError } from '../../kernel/errors.ts'
import { shellWord } from '../../kernel/shell-word.ts'
import { commandPayload, subject } from '../../message/command.ts'
import type { Command } from '../../message/generated/types.ts'
import type { CrawlCounts } from '../../state/state-store.ts'
import { announce } from '../runtime/announce.ts'
import type { Runtime } from '../runtime/runtime.ts'

/** A crawl as `crawls stop` and `crawls resume` leave it; tasks as the state store counts them. */
export interface CrawlReport extends CrawlCounts {
  readonly crawl: string
  readonly stopped: boolean
}

/** Crawls that an operator stopped: their tasks end as REFUSED `crawl-stopped` as they are read, and no link of theirs is followed. */
export function stoppedCrawls(control: Pick<ControlLog, 'get'>): (crawlId: string) => boolean {
  return (crawlId) => saysStopped(control.get(subject.crawl(crawlId)))
}

/** Their names, all of them. */
export function stoppedCrawlNames(control: Pick<ControlLog, 'withPrefix'>): readonly string[] {
  const prefix = subject.crawl('')
  return control.withPrefix(prefix).flatMap((command) => (saysStopped(command) ? [command.subject.slice(prefix.length)] : []))
}

function saysStopped(command: Command | undefined): boolean {
  if (command === undefined || command.kind === 'delete') return false
  return (commandPayload(command) as { stopped?: unknown } | null)?.stopped === true
}

/**
 * Stops a crawl, or takes URLs of it again. Resolves once it is stored; every worker follows the topic. Where the state store is away
 * nothing is done.
 */
export async function setCrawlStopped(runtime: Runtime, crawl: string, stopped: boolean): Promise<CrawlReport> {
  const counts = await (await runtime.state()).crawlCounts(crawl)
  const about = subject.crawl(crawl)
  await announce(runtime, stopped ? { kind: 'set', subject: about, payload: { stopped } } : { kind: 'delete', subject: about })
  return { crawl, stopped, ...counts }
}

/** A crawl that is stopped would refuse all that is begun in it. Errors: USAGE. */
export async function refuseStopped(runtime: Pick<Runtime, 'control'>, crawl: string): Promise<void> {
  const control = await runtime.control()
  await control.readToEnd()
  if (!stoppedCrawls(control)(crawl)) return
  throw new MillraceError(
    'USAGE',
    `the crawl ${crawl} is stopped, and its URLs would all be refused; \`millrace crawls resume ${shellWord(crawl)}\` lifts that`,
  )
}
