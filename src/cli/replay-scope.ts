import type { Config } from '../config/options.ts'
import { parseDuration } from '../config/units.ts'
import { findExtractor, type LoadedExtractor } from '../control/extractors/configured-extractors.ts'
import { existingDomain } from '../control/sites/site-domain.ts'
import type { ReplayScope, StartRequest } from '../control/trials/plan-range.ts'
import { systemClock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import { integer } from './arguments.ts'
import type { CommandContext } from './context.ts'
import { parseAnyDuration, parseMoment, refuseEmptySpan } from './parse-moment.ts'

/** What `replay` commands have in common: which extractor, which pages. */
export interface ReplayFlags {
  readonly extractor: string
  readonly toEarliest?: boolean
  readonly toDatetime?: string
  readonly byDuration?: string
  readonly toOffset?: string
  readonly shiftBy?: string
  readonly fromFile?: string
  readonly until?: string
  readonly topic?: string
  readonly domain?: string
  readonly crawl?: string
  readonly fetchedFrom?: string
  readonly fetchedUntil?: string
  readonly group?: string
}

/** A file, or the name of an extractor of the configuration. */
export function extractorOf(context: CommandContext, config: Config, given: string, option = '--extractor'): Promise<LoadedExtractor> {
  const { draining: signal } = context
  return findExtractor({ patterns: config.extractors, given, option, signal })
}

export function scopeOf(flags: ReplayFlags, config: Config): ReplayScope {
  const now = systemClock.now()
  const time = (text: string | undefined, option: string): number | undefined =>
    text === undefined ? undefined : parseMoment(text, option, now)
  const until = time(flags.until, '--until')
  const fetchedFrom = time(flags.fetchedFrom, '--fetched-from')
  const fetchedUntil = time(flags.fetchedUntil, '--fetched-until')
  const ago = {
    ...(isSpan(flags.fetchedFrom) && fetchedFrom !== undefined ? { fetchedFrom: now - fetchedFrom } : {}),
    ...(isSpan(flags.fetchedUntil) && fetchedUntil !== undefined ? { fetchedUntil: now - fetchedUntil } : {}),
  }
  const start = startOf(flags, now)
  refuseEmptySpan(['--fetched-from', fetchedFrom], ['--fetched-until', fetchedUntil])
  refuseEmptySpan(
    [flags.byDuration === undefined ? '--to-datetime' : '--by-duration', start.kind === 'time' ? start.at : undefined],
    ['--until', until],
  )
  const partitions = flags.topic === undefined ? undefined : partitionsOf(flags.topic, `${config['topics.prefix']}html`)
  return {
    start,
    ...(until === undefined ? {} : { until }),
    ...(partitions === undefined ? {} : { partitions }),
    filter: {
      domain: flags.domain === undefined ? undefined : existingDomain(flags.domain),
      crawlId: flags.crawl,
      fetchedFrom,
      fetchedUntil,
      ...(Object.keys(ago).length === 0 ? {} : { ago }),
    },
  }
}

const RANGE_FLAGS = {
  toEarliest: '--to-earliest',
  toDatetime: '--to-datetime',
  byDuration: '--by-duration',
  toOffset: '--to-offset',
  shiftBy: '--shift-by',
  fromFile: '--from-file',
  until: '--until',
  topic: '--topic',
} as const satisfies Partial<Record<keyof ReplayFlags, string>>

/** Where the range is known already a flag for another one would count for nothing. Errors: USAGE, naming them. */
export function refuseRange(flags: ReplayFlags, why: string): void {
  const given = Object.entries(RANGE_FLAGS).flatMap(([name, flag]) => (flags[name as keyof ReplayFlags] === undefined ? [] : [flag]))
  if (given.length > 0) throw new MillraceError('USAGE', `${why}; leave out ${given.join(', ')}`)
}

function isSpan(text: string | undefined): boolean {
  return text !== undefined && parseDuration(text.trim()) !== undefined
}

function startOf(flags: ReplayFlags, now: number): StartRequest {
  const given: StartRequest[] = []
  if (flags.toEarliest === true) given.push({ kind: 'earliest' })
  if (flags.toDatetime !== undefined) given.push({ kind: 'time', at: parseMoment(flags.toDatetime, '--to-datetime', now) })
  if (flags.byDuration !== undefined) given.push({ kind: 'time', at: now - parseAnyDuration(flags.byDuration, '--by-duration') })
  if (flags.toOffset !== undefined) given.push({ kind: 'offset', offset: offsetOf(flags.toOffset, '--to-offset') })
  if (flags.shiftBy !== undefined) given.push({ kind: 'shift', by: integer(flags.shiftBy, '--shift-by') })
  if (flags.fromFile !== undefined) given.push({ kind: 'file', path: flags.fromFile })
  if (given.length > 1)
    throw new MillraceError('USAGE', 'give one of --to-earliest, --to-datetime, --by-duration, --to-offset, --shift-by, --from-file')
  return given[0] ?? { kind: 'earliest' }
}

function partitionsOf(text: string, html: string): readonly number[] {
  const match = /^(.+):(\d+(?:,\d+)*)$/.exec(text)
  if (match === null || match[1] !== html)
    throw new MillraceError('USAGE', `--topic: expected ${html}:P,P, not ${JSON.stringify(text)}; pages lie on ${html} alone`)
  return (match[2] ?? '').split(',').map(Number)
}

function offsetOf(text: string, option: string): bigint {
  const offset = integer(text, option)
  if (offset >= 0n) return offset
  throw new MillraceError('USAGE', `${option}: offsets begin at 0, and this is ${text}; --shift-by goes back from where the group stands`)
}
