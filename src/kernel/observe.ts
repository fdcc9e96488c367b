import type { Clock } from './clock.ts'
import type { EventDefinition, LogLevel } from './event-definition.ts'
import { EVENTS, type EventName } from './events.ts'

export type EventFields = Readonly<Record<string, string | number | bigint | boolean | undefined | null | Error>>

/** Where lines go; pino has this shape. */
export interface Logger {
  /** False: lines of that level go nowhere, and need not be made. True where not given. */
  isLevelEnabled?(level: LogLevel): boolean
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Where numbers go. `name` is a metric of the catalogue. */
export interface MetricSink {
  record(metric: NonNullable<EventDefinition['metric']>, labels: Record<string, string>, value: number): void
}

/** What a part is given to make itself seen. Silent unless somebody listens. */
export interface Observer {
  /** Never throws. */
  emit(event: EventName, fields?: EventFields): void
  /** An observer whose lines all carry these fields: component, stage, topic, partition. */
  child(fields: EventFields): Observer
}

export const silentObserver: Observer = {
  emit: () => undefined,
  child: () => silentObserver,
}

/** Observer over a logger and metrics. Repeats of a throttled event are counted and told in the next line as `suppressedCount`. */
export function createObserver(parts: { logger?: Logger; metrics?: MetricSink; clock: Clock }): Observer {
  const held = new Map<string, { untilMono: number; suppressedCount: number }>()
  let isUncountedTold = false

  const emit = (bound: EventFields, event: EventName, fields: EventFields): void => {
    const definition: EventDefinition = EVENTS[event]
    // Several events per page: what nobody listens to must cost nothing.
    const isMeasured = definition.metric !== undefined && parts.metrics !== undefined
    const isLogged = parts.logger !== undefined && parts.logger.isLevelEnabled?.(definition.level) !== false
    if (!isMeasured && !isLogged) return
    const all = { ...bound, ...fields }
    if (isMeasured) measure(definition, event, all)
    if (!isLogged) return
    const suppressedCount = suppress(definition, event, all)
    if (suppressedCount === undefined) return
    write(definition.level, { event, ...all, ...(suppressedCount > 0 ? { suppressedCount } : {}) }, definition.message)
  }

  const measure = ({ metric }: EventDefinition, event: EventName, all: EventFields): void => {
    if (metric === undefined) return
    const labels: Record<string, string> = {}
    for (const label of metric.labels) labels[label] = String(all[label] ?? '')
    const amount = metric.value === undefined ? 1 : Number(all[metric.value] ?? 0)
    try {
      parts.metrics?.record(metric, labels, amount)
    } catch (error) {
      // It would be believed where it stands still without a word. Once: it fails each time.
      if (!isUncountedTold) write('error', { event, error }, 'a metric can not be counted, and stands still')
      isUncountedTold = true
    }
  }

  /** The work that is told of must not end by the telling: a line that finds no place, as on a full disk, is lost. */
  const write = (level: LogLevel, fields: object, message: string): void => {
    try {
      parts.logger?.[level](fields, message)
    } catch {
      // There is nowhere to say so.
    }
  }

  /** Count of lines held back since the last one, or undefined when this one is held back too. */
  const suppress = (definition: EventDefinition, event: EventName, fields: EventFields): number | undefined => {
    if (definition.throttleMs === undefined) return 0
    const key = `${event}\n${definition.throttleBy === undefined ? '' : String(fields[definition.throttleBy] ?? '')}`
    const now = parts.clock.mono()
    const seen = held.get(key)
    if (seen !== undefined && now < seen.untilMono) {
      seen.suppressedCount += 1
      return undefined
    }
    // Keys can hold a host; the map must not grow with the number of sites.
    if (held.size >= 10_000) held.clear()
    held.set(key, { untilMono: now + definition.throttleMs, suppressedCount: 0 })
    return seen?.suppressedCount ?? 0
  }

  const bind = (bound: EventFields): Observer => ({
    emit: (event, fields = {}) => emit(bound, event, fields),
    child: (fields) => bind({ ...bound, ...fields }),
  })
  return bind({})
}
