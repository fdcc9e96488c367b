import type { ControlLog } from '../../kafka/control-log.ts'
import { commandPayload, parseSubject, subject } from '../../message/command.ts'
import type { DeadLetterInfo } from '../../message/read-dead-letter.ts'
import { announcedVersion } from '../extractors/announced-versions.ts'

/**
 * What wrote a dead letter beside live work: a shadow, by the replay that it names, or a candidate, by a version that was never live. Live
 * work has no part in their failures. Shape: for people; undefined where it was live work, or a replay in place.
 */
export function writtenBeside(control: Pick<ControlLog, 'get'>, { replay, extractor }: DeadLetterInfo): string | undefined {
  const request = replay === undefined ? undefined : control.get(subject.replay(replay))
  const { shadow } = (request === undefined ? {} : (commandPayload(request) ?? {})) as { readonly shadow?: unknown }
  if (shadow !== undefined) return `the shadow replay ${replay}`
  const about = extractor === undefined ? undefined : parseSubject(`extractor:${extractor}`)
  if (about?.kind !== 'extractor') return undefined
  const wasNeverLive = announcedVersion(control, about.name, about.version)?.onlyBeside === true
  return wasNeverLive ? `${extractor}, which has run beside live work alone` : undefined
}
