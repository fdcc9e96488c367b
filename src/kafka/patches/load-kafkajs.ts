import { MillraceError } from '../../kernel/errors.ts'
import { patchAbortedMessages } from './aborted-messages.ts'
import { patchBatchEncoding } from './batch-encoding.ts'
import { patchCoordinatorFailure } from './coordinator-failure.ts'
import { patchIdleTimers } from './idle-timers.ts'
import { type KafkajsModules, kafkajsModules } from './kafkajs-modules.ts'
import { patchMessageDecoding } from './message-decoding.ts'
import { patchMessageGrouping } from './message-grouping.ts'
import { patchOfflinePartition } from './offline-partition.ts'
import { patchOutOfRange } from './out-of-range.ts'
import { patchSilentCommit } from './silent-commit.ts'
import { patchStaleBatch } from './stale-batch.ts'
import { patchUnknownPartition } from './unknown-partition.ts'

/** The patches reach into files of exactly this version. */
export const KAFKAJS_VERSION = '2.2.4'

/** Set on the patched copy, so that it is known again when this module itself is loaded twice. */
const PATCHED = Symbol.for('millrace.kafkajs.patched')

/**
 * kafkajs with our corrections, each of which has a test that fails without it.
 * Errors: KAFKA_VERSION when another version is installed; INTERNAL when something loaded kafkajs before.
 */
export function loadKafkajs(modules: KafkajsModules = kafkajsModules()): typeof import('kafkajs') {
  const version = modules.version()
  if (version !== KAFKAJS_VERSION) {
    throw new MillraceError('KAFKA_VERSION', `kafkajs ${version} is installed, expected exactly ${KAFKAJS_VERSION}`)
  }
  if (modules.isEntryLoaded()) {
    const loaded = modules.entry() as typeof import('kafkajs') & { [PATCHED]?: true }
    if (loaded[PATCHED]) return loaded
    throw new MillraceError('INTERNAL', 'kafkajs was loaded before its patches; only src/kafka may load it')
  }
  // First what other modules bind when they are loaded, then methods of classes.
  patchAbortedMessages(modules)
  patchMessageGrouping(modules)
  patchMessageDecoding(modules)
  patchBatchEncoding(modules)
  patchOfflinePartition(modules)
  patchIdleTimers(modules)
  patchUnknownPartition(modules)
  patchCoordinatorFailure(modules)
  patchSilentCommit(modules)
  patchStaleBatch(modules)
  patchOutOfRange(modules)
  const kafkajs = modules.entry() as typeof import('kafkajs')
  Object.defineProperty(kafkajs, PATCHED, { value: true })
  return kafkajs
}
