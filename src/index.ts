/** Millrace as a library. What is exported here is the public API; everything else may change without notice. */

export type { ForgottenReplay } from './control/forget-replay.ts'
export { Millrace, type MillraceOptions, type ProduceOptions } from './control/millrace.ts'
export type { BadSeed, ProduceReport } from './control/produce.ts'
export type { ConsumedRecord } from './control/record-consumer.ts'
export type { StartRequest } from './control/replay.ts'
export type { ReplayStatus } from './control/replay-ledger.ts'
export type {
  ReplayInPlaceOptions,
  ReplayInPlaceReport,
  ReplayLibrary,
  ReplayOptions,
  ReplayPlan,
  ReplayPreviewOptions,
  ReplayShadowOptions,
  ReplayShadowReport,
} from './control/replay-library.ts'
export type { PreviewReport } from './control/replay-preview.ts'
export type { RunReport } from './control/run.ts'
export type { PromoteReport } from './control/versions.ts'
export { defineExtractor } from './extract/define-extractor.ts'
export { type ErrorCode, MillraceError } from './kernel/errors.ts'
export type { Command, Outcome, Page, RecordEnvelope, UrlTask } from './message/generated/types.ts'
export type { ReplayFilter } from './message/replay-request.ts'
