import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import type { ControlLog } from '../../kafka/control-log.ts'
import { commandPayload, subject } from '../../message/command.ts'
import type { Runtime } from '../runtime/runtime.ts'

/**
 * One version per name: of several that are loaded the one that was promoted last; before the first promotion the lowest, so that a new
 * version beside the old one waits. A name with one file runs that file. Pure. Shape: in the order given.
 */
export function activeVersions(loaded: readonly LoadedExtractor[], promoted: ReadonlyMap<string, number>): readonly LoadedExtractor[] {
  const active = new Map<string, LoadedExtractor>()
  for (const extractor of loaded) {
    const { name, version } = extractor
    const other = active.get(name)
    const wanted = promoted.get(name)
    if (other === undefined || version === wanted || (other.version !== wanted && version < other.version)) active.set(name, extractor)
  }
  return loaded.filter((extractor) => active.get(extractor.name) === extractor)
}

/** A promotion that changes nothing here: no file of that version was given. */
export interface PassedOver {
  readonly extractor: string
  readonly promoted: number
  readonly working: number
}

/** Pure. */
export function passedOver(loaded: readonly LoadedExtractor[], promoted: ReadonlyMap<string, number>): readonly PassedOver[] {
  return activeVersions(loaded, promoted).flatMap(({ name, version }) => {
    const wanted = promoted.get(name)
    return wanted === undefined || wanted === version ? [] : [{ extractor: name, promoted: wanted, working: version }]
  })
}

/** What `control` holds: name to version. What is no version there is passed over. */
export function promotedVersions(control: Pick<ControlLog, 'withPrefix'>): Map<string, number> {
  return new Map(promotions(control).map(({ extractor, version }) => [extractor, version]))
}

export interface Promotion {
  readonly extractor: string
  readonly version: number
  /** When it was promoted, in ms. */
  readonly since: number
}

/** Of each name the last one, by name. */
export function promotions(control: Pick<ControlLog, 'withPrefix'>): readonly Promotion[] {
  const prefix = subject.promoted('')
  return control
    .withPrefix(prefix)
    .flatMap((command) => {
      const payload = command.kind === 'set' ? (commandPayload(command) as { version?: unknown } | null) : null
      if (typeof payload?.version !== 'number') return []
      return [{ extractor: command.subject.slice(prefix.length), version: payload.version, since: command.at }]
    })
    .toSorted((a, b) => (a.extractor < b.extractor ? -1 : 1))
}

/** The versions that work, as promotions change them while the process runs. */
export interface WorkingVersions {
  readonly current: readonly LoadedExtractor[]
  /** All that there are files of; a replay in place may need one that does not work. */
  readonly loaded: readonly LoadedExtractor[]
  /** Called when others work from now on, until the returned function is called. */
  onChange(listener: () => void): () => void
}

/** Those of `control`, until the runtime is closed. A promoted version that there is no file of is told. */
export async function followPromotions(runtime: Runtime, loaded: readonly LoadedExtractor[]): Promise<WorkingVersions> {
  const control = await runtime.control()
  await control.readToEnd()
  const listeners = new Set<() => void>()
  // In one go with the subscription: no promotion comes between the two.
  let current = activeVersions(loaded, promotedVersions(control))
  const tell = (each: PassedOver): void => runtime.observer.emit('PromotionPassedOver', { ...each })
  for (const each of passedOver(loaded, promotedVersions(control))) tell(each)
  const unsubscribe = control.subscribe(({ command }) => {
    if (!command.subject.startsWith(subject.promoted(''))) return
    const promoted = promotedVersions(control)
    for (const each of passedOver(loaded, promoted)) if (command.subject === subject.promoted(each.extractor)) tell(each)
    const next = activeVersions(loaded, promoted)
    if (next.every((extractor) => current.includes(extractor))) return
    current = next
    for (const listener of listeners) listener()
  })
  runtime.onClose('promotions', unsubscribe)
  return {
    get current() {
      return current
    },
    loaded,
    onChange: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

/** Those that are named, whatever is promoted. */
export function fixedVersions(extractors: readonly LoadedExtractor[]): WorkingVersions {
  return { current: extractors, loaded: extractors, onChange: () => () => undefined }
}
