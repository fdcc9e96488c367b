import { z } from 'zod'
import { hostPattern } from '../kernel/host-pattern.ts'
import { nearestName } from '../kernel/nearest.ts'
import { LEAST_RATE_PER_SECOND, MOST_CRAWL_DELAY_MS } from '../kernel/pace-bounds.ts'
import { parseDuration } from './units.ts'

/** Hours of the day in which a site has another pace. Minutes count from midnight on the wall clock of `timezone`. */
export interface ScheduleWindow extends RulePace {
  readonly fromMinute: number
  /** Not above `fromMinute`: the window ends on the next day. */
  readonly toMinute: number
  /** Days on which the window begins, 0 for Sunday; undefined: every day. */
  readonly days?: readonly number[]
  readonly timezone: string
  readonly isPaused?: boolean
  /** As it stands in the file. */
  readonly text: string
}

interface RulePace {
  readonly ratePerSecond?: number
  readonly burst?: number
  readonly concurrency?: number
  readonly crawlDelayMs?: number
}

/** As in the file, with durations in ms and hours in minutes. */
export interface PolitenessRule extends RulePace {
  readonly match: string
  readonly key?: 'host' | 'domain' | 'ip'
  /** Proxies of these hosts; an empty list: directly. `fetch.proxies` where not given. */
  readonly proxies?: readonly string[]
  readonly schedule?: readonly ScheduleWindow[]
}

export type ParsedRules =
  | { readonly ok: true; readonly value: readonly PolitenessRule[] }
  /** `at`: the path of the rule or key that is wrong; `expected` says all of it then. */
  | { readonly ok: false; readonly expected: string; readonly at?: readonly PropertyKey[] }

const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const
const HOURS = /^(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})$/
const MINUTES_OF_DAY = 1_440

const duration = z.unknown().transform((given, context) => {
  const ms = typeof given === 'string' ? parseDuration(given) : undefined
  if (ms === undefined) context.addIssue({ code: 'custom', message: `${JSON.stringify(given)} is not a duration with its unit, like 30s` })
  return ms ?? 0
})
const hours = z.string().transform((text, context) => {
  const window = parseHours(text)
  if (window === undefined)
    context.addIssue({ code: 'custom', message: `are two times, like 22:00-06:00, and not ${JSON.stringify(text)}` })
  return { fromMinute: window?.[0] ?? 0, toMinute: window?.[1] ?? 0, text }
})
const days = z.string().transform((text, context) => {
  const parsed = parseDays(text)
  if (parsed === undefined) context.addIssue({ code: 'custom', message: `are like mon-fri or sat,sun, and not ${JSON.stringify(text)}` })
  return parsed ?? []
})
const timezone = z.string().refine(isTimezone, {
  error: ({ input }) => `is a name of the time zone database, like Europe/Berlin, and not ${JSON.stringify(input)}`,
})
const match = z
  .string()
  .min(1)
  .transform((text, context) => {
    const pattern = hostPattern(text)
    if (pattern === undefined)
      context.addIssue({
        code: 'custom',
        message: `is a host without scheme, port and path, like *.example.com, and not ${JSON.stringify(text)}`,
      })
    return pattern ?? text
  })
const pace = {
  ratePerSecond: z.number().min(LEAST_RATE_PER_SECOND).optional(),
  burst: z.number().int().positive().optional(),
  concurrency: z.number().int().positive().optional(),
  crawlDelay: duration.refine((ms) => ms <= MOST_CRAWL_DELAY_MS, { error: 'is at most 365d' }).optional(),
}
const window = z.strictObject({ hours, days: days.optional(), timezone: timezone.default('UTC'), paused: z.boolean().optional(), ...pace })
const rule = z.strictObject({
  match,
  key: z.enum(['host', 'domain', 'ip']).optional(),
  schedule: z.array(window).min(1).optional(),
  proxies: z.array(z.string().min(1)).optional(),
  ...pace,
})

/** The value of `politeness.rules`. Total: what is wrong is said with the number of the rule and the path within it. */
export function parsePolitenessRules(raw: unknown): ParsedRules {
  if (raw === '') return { ok: true, value: [] }
  if (!Array.isArray(raw)) return { ok: false, expected: 'a list of rules, each with match' }
  const rules: PolitenessRule[] = []
  for (const [index, item] of raw.entries()) {
    const parsed = rule.safeParse(item)
    if (!parsed.success) {
      const { issues } = parsed.error
      // Before what is missing: that is often the one that is misspelt.
      const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0]
      return { ok: false, ...faultOf(index, issue) }
    }
    const { match, key, schedule, proxies } = parsed.data
    rules.push({
      match,
      ...(key === undefined ? {} : { key }),
      ...paceValues(parsed.data),
      ...(proxies === undefined ? {} : { proxies }),
      ...(schedule === undefined ? {} : { schedule: schedule.map(scheduleWindow) }),
    })
  }
  return { ok: true, value: rules }
}

function faultOf(index: number, issue: z.core.$ZodIssue | undefined): { readonly expected: string; readonly at: readonly PropertyKey[] } {
  const path = issue?.path ?? []
  const place = path.length === 0 ? `rule ${index + 1}:` : `rule ${index + 1}: ${path.join('.')}`
  if (issue?.code !== 'unrecognized_keys') return { expected: `${place} ${issue?.message ?? 'is no rule'}`, at: [index, ...path] }
  const [key = ''] = issue.keys
  const near = nearestName(key, Object.keys(path.length === 0 ? rule.shape : window.shape))
  const meant = near === undefined ? '' : `; did you mean ${near}?`
  return { expected: `${place} unknown key ${JSON.stringify(key)}${meant}`, at: [index, ...path, key] }
}

function scheduleWindow(given: z.infer<typeof window>): ScheduleWindow {
  const { hours, days, timezone, paused } = given
  return {
    ...hours,
    text: `${hours.text} ${timezone}`,
    timezone,
    ...(days === undefined ? {} : { days }),
    ...(paused === undefined ? {} : { isPaused: paused }),
    ...paceValues(given),
  }
}

function paceValues(given: { [Name in keyof typeof pace]?: number | undefined }): RulePace {
  const { ratePerSecond, burst, concurrency, crawlDelay } = given
  return {
    ...(ratePerSecond === undefined ? {} : { ratePerSecond }),
    ...(burst === undefined ? {} : { burst }),
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(crawlDelay === undefined ? {} : { crawlDelayMs: crawlDelay }),
  }
}

/** Shape: minutes from midnight, the first below 24:00; undefined where it is no window of more than nothing. */
function parseHours(text: string): readonly [number, number] | undefined {
  const [, fromHour, fromMinute, toHour, toMinute] = HOURS.exec(text.trim()) ?? []
  if (Number(fromMinute) > 59 || Number(toMinute) > 59) return undefined
  const from = Number(fromHour) * 60 + Number(fromMinute)
  const to = Number(toHour) * 60 + Number(toMinute)
  return from < MINUTES_OF_DAY && to <= MINUTES_OF_DAY && from !== to ? [from, to] : undefined
}

function parseDays(text: string): number[] | undefined {
  const found = new Set<number>()
  for (const part of text.toLowerCase().split(',')) {
    const [first = '', last = first, ...rest] = part.trim().split('-')
    const from = DAYS.indexOf(first.trim() as (typeof DAYS)[number])
    const to = DAYS.indexOf(last.trim() as (typeof DAYS)[number])
    if (from === -1 || to === -1 || rest.length > 0) return undefined
    for (let day = from; ; day = (day + 1) % 7) {
      found.add(day)
      if (day === to) break
    }
  }
  return [...found].sort()
}

function isTimezone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}
