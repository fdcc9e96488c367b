import type { AvroSchema } from './avro.ts'
import type { CompatibilityLevel } from './compatibility.ts'

const OWN_NAMESPACE = 'io.millrace.v1.'

/** TopicNameStrategy for our own messages, TopicRecordNameStrategy for records, of which one topic holds many kinds. */
export function subjectOf(topic: string, schema: Pick<AvroSchema, 'name'>): string {
  return isOwn(schema) ? `${topic}-value` : `${topic}-${schema.name}`
}

/** Which way the schemas of a subject must be readable: workers of several versions run at once, records are read by newer sinks. */
export function compatibilityOf(schema: Pick<AvroSchema, 'name'>): CompatibilityLevel {
  return isOwn(schema) ? 'FULL_TRANSITIVE' : 'BACKWARD_TRANSITIVE'
}

function isOwn({ name }: Pick<AvroSchema, 'name'>): boolean {
  return name.startsWith(OWN_NAMESPACE)
}
