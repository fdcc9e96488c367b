import type { AvroSchema } from './avro.ts'
import type { CompatibilityLevel } from './compatibility.ts'

const OWN_NAMESPACE = 'io.millrace.v1.'
/** Of the schemas of all records, whatever their extractor is written in. */
export const RECORDS_NAMESPACE = 'io.millrace.records'

/** TopicNameStrategy for our own messages, TopicRecordNameStrategy for records, of which one topic holds many kinds. */
export function subjectOf(topic: string, schema: Pick<AvroSchema, 'name'>): string {
  return isOwn(schema) ? `${topic}-value` : `${topic}-${schema.name}`
}

/** Which way the schemas of a subject must be readable: workers of several versions run at once, records are read by newer sinks. */
export function compatibilityOf(schema: Pick<AvroSchema, 'name'>): CompatibilityLevel {
  return isOwn(schema) ? 'FULL_TRANSITIVE' : 'BACKWARD_TRANSITIVE'
}

/** Whether a schema of that full name wrote the record of an extractor; the topic of records may be one that others write to as well. */
export function isOfRecords(schemaName: string): boolean {
  return schemaName.startsWith(`${RECORDS_NAMESPACE}.`)
}

function isOwn({ name }: Pick<AvroSchema, 'name'>): boolean {
  return name.startsWith(OWN_NAMESPACE)
}
