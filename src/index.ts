/** Millrace as a library. What is exported here is the public API; everything else may change without notice. */

export { Millrace, type MillraceOptions, type ProduceOptions, type ReplayOptions } from './control/millrace.ts'
export type { BadSeed, ProduceReport } from './control/produce.ts'
export type { ConsumedRecord } from './control/record-consumer.ts'
export type { RunReport } from './control/run.ts'
export type { ShadowReport } from './control/shadow-replay.ts'
export { defineExtractor } from './extract/define-extractor.ts'
export { type ErrorCode, MillraceError } from './kernel/errors.ts'
export type { Command, Outcome, Page, RecordEnvelope, UrlTask } from './message/generated/types.ts'
