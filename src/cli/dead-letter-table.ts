import type { NamedDeadLetter } from '../control/dead-letters/dead-letters.ts'
import { renderTable } from './render.ts'

const REASON_SHOWN = 60
const URL_SHOWN = 300

/** A line for each: where, when, whose, why, and of which URL; `dead-letters show` has the whole of it. Pure. */
export function deadLetterTable(letters: readonly NamedDeadLetter[]): string {
  const withExtractor = letters.some(({ info }) => info.extractor !== undefined)
  const titles = ['P:N', 'TIME', 'STAGE', 'CODE', ...(withExtractor ? ['EXTRACTOR'] : []), 'REASON', 'URL']
  const rows = letters.map((letter) => {
    const { partition, offset, timestamp, key, url, info, resolved } = letter
    const code = resolved === undefined ? (info.code ?? '') : `${info.code ?? ''} (${resolved.action})`
    return [
      `${partition}:${offset}`,
      timeText(timestamp),
      info.stage ?? '',
      code,
      ...(withExtractor ? [`${info.extractor ?? ''}${info.replay === undefined ? '' : ` of replay ${info.replay}`}`] : []),
      shortened(reasonOf(letter), REASON_SHOWN),
      shortened(url ?? keyText(key), URL_SHOWN),
    ]
  })
  return renderTable(
    titles.map((title) => ({ title })),
    rows,
  )
}

/** The word that stands in the outcome, then what else is known: the URL has a column of its own, but in a chain of redirects it stays. */
function reasonOf({ info, url }: NamedDeadLetter): string {
  const { reason, message } = info
  const rest = url === null || message?.includes(' -> ') ? message : message?.replaceAll(url, '').trim()
  return [reason, rest].filter((text) => text !== undefined && text !== '').join(': ')
}

/** Of one whose URL nobody can read. */
export function keyText(key: string | null): string {
  return key === null || key === '' ? '' : `(key ${key})`
}

export function timeText(epochMs: number): string {
  return new Date(epochMs).toISOString().slice(0, 19)
}

function shortened(text: string, length: number): string {
  const characters = [...text]
  return characters.length <= length ? text : `${characters.slice(0, length - 1).join('')}…`
}
