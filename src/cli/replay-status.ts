import type { ReplayStatus } from '../control/replay/replay-status.ts'
import type { ShadowReport } from '../control/replay/shadow-replay.ts'
import { isAre } from '../kernel/count-text.ts'
import { durationText } from '../kernel/duration-text.ts'
import { counted, renderCount, renderTable } from './render.ts'

/** All replays, one line each: how far by offsets, of which not all are pages, and the pages that were read. Pure, as the others. */
export function replaysTable(replays: readonly ReplayStatus[]): string {
  return renderTable(
    [
      { title: 'REPLAY' },
      { title: 'GROUP', flexible: true },
      { title: 'EXTRACTOR', flexible: true },
      { title: 'STATE' },
      { title: 'DONE', align: 'right' },
      { title: 'OFFSETS', align: 'right' },
      { title: 'PAGES', align: 'right' },
    ],
    replays.map((status) => [
      status.replayId,
      status.groupId,
      `${status.extractor}:${status.version}`,
      stateOf(status),
      renderCount(status.doneOffsets),
      renderCount(status.offsets),
      renderCount(status.totals.pages),
    ]),
  )
}

/** One replay: how far it is, what it waits for, its partitions. */
export function statusText(status: ReplayStatus): string {
  const { replayId, groupId, extractor, version, state, behind, shadowTopic, offsets, doneOffsets, totals } = status
  const lines = [
    `replay ${replayId} of ${extractor} version ${version}: ${state}, ${renderCount(doneOffsets)} of ${counted(offsets, 'offset')}`,
  ]
  if (behind !== undefined)
    lines.push(
      `it stands behind replay ${behind}, which is open in ${groupId} too: its owners turn to it when that one has ended; \`millrace replay cancel ${replayId}\` calls it off`,
    )
  else if (isUnattended(status))
    lines.push(
      shadowTopic === undefined
        ? `nobody works on it: no member of ${groupId} runs; it goes on once \`millrace run\` or \`millrace extract\` is started with that version`
        : `nobody works on it: its process has ended; \`millrace replay run --shadow --id ${replayId}\` with the same flags goes on`,
    )
  const { records, none, deadLetters } = totals
  lines.push(
    `${counted(totals.pages, 'page')} read, ${counted(records, 'record')}, ${renderCount(none)} without, ${counted(deadLetters, 'dead letter')}${shadowTopic === undefined ? '' : `; records are in ${shadowTopic}`}`,
  )
  const { gone = 0 } = status
  if (gone > 0) lines.push(goneText(gone))
  const table = renderTable(
    [
      { title: 'PARTITION', align: 'right' },
      { title: 'PHASE' },
      { title: 'FROM', align: 'right' },
      { title: 'UNTIL', align: 'right' },
      { title: 'POSITION', align: 'right' },
    ],
    status.partitions.map(({ partition, phase, from, until, position }) => [String(partition), phase, from, until, position ?? '']),
  )
  return [...lines, table].join('\n')
}

/** What `--tombstones` has done. */
export function deletedText({ keys, topic }: { readonly keys: readonly string[]; readonly topic: string }): string {
  return `${counted(keys.length, 'key')} of ${topic} deleted`
}

function goneText(gone: number): string {
  return `${counted(gone, 'page')} of the range ${isAre(gone)} gone: retention deleted ${gone === 1 ? 'it before it was' : 'them before they were'} read`
}

/** Of a range as it was asked for. */
export function rangeGoneText({ gone, offsets }: { readonly gone: number | bigint; readonly offsets: number | bigint }): string {
  return `${counted(gone, 'offset')} of the range ${isAre(gone)} gone by retention; ${renderCount(offsets)} ${isAre(offsets)} left`
}

/** What a shadow that is done has written. */
export function shadowSummary({ pages, records, deadLetters, gone, elapsedMs, topic, resumed }: Omit<ShadowReport, 'replayId'>): string {
  const since = resumed ? ' since it went on' : ''
  const lost = gone > 0 ? `\n${goneText(gone)}` : ''
  return `${counted(pages, 'page')} read, ${counted(records, 'record')}, ${counted(deadLetters, 'dead letter')} in ${durationText(elapsedMs)}${since}; records are in ${topic}${lost}`
}

function stateOf(status: ReplayStatus): string {
  if (status.behind !== undefined) return `behind ${status.behind}`
  return isUnattended(status) ? 'no worker' : status.state
}

function isUnattended({ state, members }: ReplayStatus): boolean {
  return state === 'open' && members === 0
}
