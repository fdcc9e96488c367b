import { isUtf8 } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { errorText } from '../kernel/errors.ts'
import { type ExtractorProblem, invalidExtractor } from './language/extractor-problem.ts'

/** Text of an extractor file. Errors: EXTRACTOR_INVALID where it can't be read, or is no text in UTF-8. */
export function readExtractorFile(file: string): string {
  let bytes: Buffer
  try {
    bytes = readFileSync(file)
  } catch (cause) {
    throw invalidExtractor(file, [whole(readFailure(file, cause))])
  }
  // Read as something else, a letter of another encoding would make a selector that never fits.
  if (!isUtf8(bytes)) throw invalidExtractor(file, [foreignByte(bytes)])
  return bytes.toString('utf8')
}

function readFailure(file: string, cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  if (code === 'EISDIR') return `it is a folder; name the files in it, as in ${basename(file)}/*.yaml`
  if (code === 'ENOENT') return 'there is no such file'
  return `the file can't be read: ${errorText(cause)}`
}

function whole(message: string): ExtractorProblem {
  return { severity: 'error', message, line: undefined, column: undefined }
}

/** At the first byte that does not fit. */
function foreignByte(bytes: Buffer): ExtractorProblem {
  const mended = Buffer.from(bytes.toString('utf8'))
  // A letter that the file ends within differs behind its end.
  const at = Math.min(
    mended.findIndex((byte, index) => byte !== bytes[index]),
    bytes.length - 1,
  )
  const before = bytes.subarray(0, at).toString('utf8')
  const message = `the file is no text in UTF-8: byte ${at + 1} is 0x${bytes.toString('hex', at, at + 1)}; save it as UTF-8`
  return { severity: 'error', message, line: before.split('\n').length, column: before.length - before.lastIndexOf('\n') }
}
