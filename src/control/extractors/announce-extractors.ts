import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { LoadedExtractor } from '../../extract/load-extractors.ts'
import { MillraceError } from '../../kernel/errors.ts'
import { makeFolder } from '../../machine/make-folder.ts'
import type { AvroSchema } from '../../message/avro.ts'
import { subject } from '../../message/command.ts'
import { notForRecords } from '../../message/topics.ts'
import { announce, announceSchema } from '../runtime/announce.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { announcedVersion, announcedVersions, refuseIncompatible } from './announced-versions.ts'

/**
 * Tells all members of these extractors: their record schemas first, so that any reader can decode what follows. Errors: EXTRACTOR_INVALID
 * where its topic is one of other messages, EXTRACTOR_VERSION_CHANGED for a definition that differs under a version that is known,
 * EXTRACTOR_INCOMPATIBLE for a schema that can't read what older versions wrote, naming the field. One that runs beside live work binds no
 * later one, until it is live.
 */
export async function announceExtractors(
  runtime: Runtime,
  extractors: readonly LoadedExtractor[],
  runs: 'live' | 'beside' = 'live',
): Promise<void> {
  const control = await runtime.control()
  await control.readToEnd()
  for (const extractor of extractors) {
    const { name, version, topic, definitionSha256, schema } = extractor
    const why = topic === undefined ? undefined : notForRecords(runtime.topics, topic)
    if (why !== undefined)
      throw new MillraceError('EXTRACTOR_INVALID', `records of ${name} version ${version} can't go to topic ${topic}: ${why}`)
    const known = announcedVersions(control, name)
    const same = known.find((announced) => announced.version === version)
    if (same !== undefined && same.definitionSha256 !== definitionSha256) throw changedDefinition(extractor)
    await refuseIncompatible(runtime, extractor, known)
    runtime.schemaStore.add(schema.text)
    keepSchemaFile(runtime, schema)
    // Anew: the registry was asked meanwhile. What an older release announced does not tell the topic, or has another schema for the same
    // definition.
    const now = announcedVersion(control, name, version)
    const onlyBeside = runs === 'beside' && now?.onlyBeside !== false
    if (now !== undefined && now.topic === topic && now.fingerprint === schema.fingerprint && now.onlyBeside === onlyBeside) continue
    await announceVersion(runtime, extractor, onlyBeside)
  }
}

/** A live worker of the same version may announce it at the same moment: it stays live then, whoever was last. */
async function announceVersion(runtime: Runtime, extractor: LoadedExtractor, onlyBeside: boolean): Promise<void> {
  const { name, version, topic, definitionSha256, schema, requiredFields } = extractor
  const about = subject.extractor(name, version)
  const required = requiredFields
  const payload = { definitionSha256, fingerprint: schema.fingerprint, required, ...(topic === undefined ? {} : { topic }) }
  const control = await runtime.control()
  let isLive = false
  const unsubscribe = control.subscribe(({ command }) => {
    if (command.subject === about && announcedVersion(control, name, version)?.onlyBeside === false) isLive = true
  })
  try {
    await claimVersion(runtime, extractor)
    await announceSchema(runtime, schema)
    await announce(runtime, { kind: 'announce', subject: about, payload: onlyBeside ? { ...payload, tried: true } : payload })
    if (onlyBeside && isLive) await announce(runtime, { kind: 'announce', subject: about, payload })
  } finally {
    unsubscribe()
  }
}

/** Two workers that start at the same moment both find the version unknown: the store lets one of two definitions in. */
async function claimVersion(runtime: Runtime, extractor: LoadedExtractor): Promise<void> {
  const state = await runtime.state()
  const name = `extractor:${extractor.name}:${extractor.version}`
  if (await state.writeValueOnce(name, extractor.definitionSha256)) return
  if ((await state.readValue(name)) !== extractor.definitionSha256) throw changedDefinition(extractor)
}

function changedDefinition({ name, version, file }: LoadedExtractor): MillraceError {
  return new MillraceError(
    'EXTRACTOR_VERSION_CHANGED',
    `${file}: extractor ${name} differs from what ran as version ${version} before; raise it to ${version + 1}`,
    {
      context: { file },
    },
  )
}

/** A reader without a registry finds every record schema as a file. */
function keepSchemaFile(runtime: Runtime, schema: AvroSchema): void {
  const folder = join(runtime.dataDir, 'schemas')
  makeFolder(folder)
  writeFileSync(join(folder, `${schema.name}.${schema.fingerprint}.avsc`), `${JSON.stringify(JSON.parse(schema.text), null, 2)}\n`)
}
