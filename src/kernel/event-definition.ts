export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

export interface EventDefinition {
  readonly level: LogLevel
  readonly message: string
  /** Metric without the `millrace_` prefix; counters end in `_total`. None: the event is a log line alone. */
  readonly metric?: {
    readonly name: string
    readonly kind: 'counter' | 'gauge' | 'histogram'
    readonly help: string
    readonly labels: readonly string[]
    /** Field that holds the amount; a counter without one counts 1. */
    readonly value?: string
    /** Upper bounds, in the unit that the name ends with. */
    readonly buckets?: readonly number[]
  }
  /** At most one line per this many ms and per value of `throttleBy`; the next line says how many were held back. */
  readonly throttleMs?: number
  readonly throttleBy?: string
}

/** A counter; `value` names the field that holds the amount. */
export const counter = (name: string, help: string, labels: readonly string[] = [], value?: string) =>
  ({ name, kind: 'counter', help, labels, ...(value === undefined ? {} : { value }) }) as const
export const histogram = (name: string, help: string, labels: readonly string[], value: string, buckets: readonly number[]) =>
  ({ name, kind: 'histogram', help, labels, value, buckets }) as const

/** Upper bounds of what takes a moment to minutes. */
export const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120] as const
