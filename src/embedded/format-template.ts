import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryBeside, writeFileAtomic } from './atomic-file.ts'
import { newKafkaId } from './broker-folder.ts'
import { BOOTSTRAP_SNAPSHOT } from './data-folder.ts'
import type { Java } from './java-runtime.ts'
import type { KafkaJars } from './kafka-jars.ts'
import { runCommand, tail } from './run-command.ts'
import { brokerProperties, renderProperties } from './server-properties.ts'

/**
 * The first snapshot of the metadata log (the feature levels of the version, no cluster id), made once for each version by Kafka's own
 * format tool and kept with the jars: a new data folder then needs no second of a JVM. Errors: an Error with the tool's output.
 */
export async function bootstrapSnapshot(java: Java, jars: KafkaJars, signal?: AbortSignal): Promise<Uint8Array> {
  const cached = join(jars.folder, 'bootstrap.checkpoint')
  if (existsSync(cached)) return readFileSync(cached)
  const scratch = temporaryBeside(join(jars.folder, 'format'))
  mkdirSync(scratch)
  try {
    writeFileAtomic(join(scratch, 'server.properties'), renderProperties(brokerProperties({ port: 9092, controllerPort: 9093 })))
    const args = [
      '-XX:TieredStopAtLevel=1',
      '-XX:+UseSerialGC',
      '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
      '-cp',
      jars.jars.join(':'),
      'kafka.tools.StorageTool',
      'format',
      '-t',
      newKafkaId(),
      '-c',
      'server.properties',
    ]
    const result = await runCommand(java.command, args, { cwd: scratch, timeoutMs: 60_000, ...(signal === undefined ? {} : { signal }) })
    if (result.kind !== 'done') {
      const output = result.kind === 'failed' ? `${result.how}\n${tail(result.output, 15)}` : `${java.command} is gone`
      throw new Error(`Kafka's format tool failed: ${output}`)
    }
    const snapshot = readFileSync(join(scratch, 'data', BOOTSTRAP_SNAPSHOT))
    writeFileAtomic(cached, snapshot)
    return snapshot
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
