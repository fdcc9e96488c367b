import type { MessageCodec } from './codec.ts'
import { readable } from './readable.ts'
import { looksLikeJson } from './url-task-json.ts'

/**
 * The URL that a message of pages, tasks or dead letters is about: its key where that is a page's, else that of the task that it is. Shape:
 * as it is written, whether or not it can be fetched; null where none can be read. Errors: as of the registry, where the schema of the
 * value is still to be asked for.
 */
export async function messageUrl(
  codec: Pick<MessageCodec, 'decode' | 'ensureSchemas'>,
  { key, value }: { readonly key: string | null; readonly value: Buffer | null },
): Promise<string | null> {
  if (key !== null && /^https?:\/\//.test(key)) return key
  if (value === null) return null
  if (looksLikeJson(value)) return jsonUrl(value)
  await codec.ensureSchemas([value])
  return readable(() => codec.decode('UrlTask', value).url) ?? null
}

/** A task that was refused for another field still names its URL. */
function jsonUrl(value: Buffer): string | null {
  try {
    const { url } = JSON.parse(value.toString('utf8')) as { url?: unknown }
    return typeof url === 'string' ? url : null
  } catch {
    return null
  }
}
