import type { Clock } from '../kernel/clock.ts'
import { errorText, MillraceError } from '../kernel/errors.ts'
import type { Command } from './generated/types.ts'
import { uuidV7 } from './ids.ts'

/** set and delete: a value. announce: something exists. request and close: work to do, and its end. */
export type CommandKind = 'set' | 'delete' | 'announce' | 'request' | 'close'

/** Names on the control topic; the key of the message. The last command of a subject wins. */
export const subject = {
  layout: 'layout',
  site: (domain: string): string => `site:${domain}`,
  replay: (replayId: string): string => `replay:${replayId}`,
  schema: (fingerprint: string): string => `schema:${fingerprint}`,
  extractor: (name: string, version: number): string => `extractor:${name}:${version}`,
  crawl: (crawlId: string): string => `crawl:${crawlId}`,
  /** Which version of an extractor works. */
  promoted: (name: string): string => `promoted:${name}`,
  /** Marks of dead letters that are dealt with; each of them a subject of its own, so that none supersedes another. */
  deadLetters: (markId: string): string => `dead-letters:${markId}`,
} as const

/** Written in transactions: it counts when that has committed. */
export function isMarkSubject(text: string): boolean {
  return text.startsWith(subject.deadLetters(''))
}

export type Subject =
  | { readonly kind: 'layout' }
  | { readonly kind: 'site'; readonly domain: string }
  | { readonly kind: 'replay'; readonly replayId: string }
  | { readonly kind: 'schema'; readonly fingerprint: string }
  | { readonly kind: 'extractor'; readonly name: string; readonly version: number }
  | { readonly kind: 'crawl'; readonly crawlId: string }
  | { readonly kind: 'promoted'; readonly name: string }
  | { readonly kind: 'dead-letters'; readonly markId: string }

/** Shape: undefined for a subject that this version does not know: it is passed over, never an error. */
export function parseSubject(text: string): Subject | undefined {
  if (text === subject.layout) return { kind: 'layout' }
  const colon = text.indexOf(':')
  const rest = text.slice(colon + 1)
  if (colon === -1 || rest === '') return undefined
  switch (text.slice(0, colon)) {
    case 'site':
      return { kind: 'site', domain: rest }
    case 'replay':
      return { kind: 'replay', replayId: rest }
    case 'schema':
      return { kind: 'schema', fingerprint: rest }
    case 'crawl':
      return { kind: 'crawl', crawlId: rest }
    case 'promoted':
      return { kind: 'promoted', name: rest }
    case 'dead-letters':
      return { kind: 'dead-letters', markId: rest }
    case 'extractor': {
      const match = /^(.+):([1-9]\d{0,9})$/.exec(rest)
      return match === null ? undefined : { kind: 'extractor', name: match[1] ?? '', version: Number(match[2]) }
    }
    default:
      return undefined
  }
}

/** Shape: payload is any JSON value; none is `null`. */
export function newCommand(fields: {
  readonly clock: Pick<Clock, 'now'>
  readonly kind: CommandKind
  readonly subject: string
  readonly payload?: unknown
  /** Command and host. */
  readonly by: string
  readonly replyTo?: string
}): Command {
  return {
    id: uuidV7(fields.clock),
    kind: fields.kind,
    subject: fields.subject,
    payload: JSON.stringify(fields.payload ?? null),
    at: fields.clock.now(),
    by: fields.by,
    replyTo: fields.replyTo ?? null,
  }
}

/** Errors: MESSAGE_INVALID where the payload is no JSON. */
export function commandPayload(command: Command): unknown {
  try {
    return JSON.parse(command.payload)
  } catch (cause) {
    throw new MillraceError(
      'MESSAGE_INVALID',
      `the payload of command ${command.id} (${command.subject}) is no JSON: ${errorText(cause)}`,
      { cause },
    )
  }
}
