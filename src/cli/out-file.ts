import { createWriteStream, fstat, ftruncate, type WriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { finished } from 'node:stream/promises'
import { promisify } from 'node:util'
import type { WriteRecord } from '../control/records/record-output.ts'
import { errorText, MillraceError } from '../kernel/errors.ts'
import type { CommandContext } from './context.ts'
import { renderBytes, toJson } from './render.ts'

export interface Out {
  /** What was written before goes, unless it is appended to. */
  begin(): Promise<WriteRecord>
  /** What was written is in the file then. The signal: nobody waits any longer for who takes it. */
  end(signal: AbortSignal): Promise<void>
}

interface OutOptions {
  /** What the file held stays, and the records come behind it. */
  readonly appends: boolean
  /** What is lost by a file that could not be written, and how it is had again; a piece of a sentence. */
  readonly missing: (target: string) => string
}

/**
 * The file of `--out`. It is opened before the run, so that a path that can't be written is told at once, and emptied only when the run
 * works.
 * Errors: USAGE; of what it gives DISK_FULL and INTERNAL, with what is missing.
 */
export async function openOut(
  context: Pick<CommandContext, 'out' | 'note'>,
  target: string,
  { appends, missing }: OutOptions,
): Promise<Out> {
  if (target === '-') return { begin: async () => (record) => context.out(toJson(record)), end: async () => undefined }
  const { stream, fd } = await opened(target)
  let failure: unknown
  stream.on('error', (error) => {
    failure = outFailure(target, error, missing(target))
  })
  const write: WriteRecord = async (record) => {
    if (failure !== undefined) throw failure
    if (stream.write(`${toJson(record)}\n`)) return
    await drained(stream)
    if (failure !== undefined) throw failure
  }
  return {
    async begin() {
      // A pipe or a device has nothing to empty.
      const file = await promisify(fstat)(fd)
      if (!file.isFile()) return write
      if (appends) {
        // A run whose disk was full, or that was killed, has left half a line.
        if (!(await endsInLine(target, file.size))) stream.write('\n')
        return write
      }
      if (file.size > 0) context.note(`--out: ${target} held ${renderBytes(file.size)}, which the records of this crawl replace`)
      await promisify(ftruncate)(fd)
      return write
    },
    async end(signal) {
      stream.end()
      await finished(stream, { signal }).catch(() => undefined)
      if (signal.aborted && !stream.writableFinished) {
        stream.destroy()
        failure ??= new MillraceError('ABORTED', `--out: ${target} did not take all records in time; ${missing(target)}`)
      }
      if (failure !== undefined) throw failure
    },
  }
}

/** Until there is room again, or it is closed. */
function drained(stream: WriteStream): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done)
      stream.off('close', done)
      resolve()
    }
    stream.on('drain', done)
    // After an error too.
    stream.on('close', done)
  })
}

function opened(target: string): Promise<{ stream: WriteStream; fd: number }> {
  return new Promise((resolve, reject) => {
    const stream = createWriteStream(target, { flags: 'a' })
    stream.once('open', (fd) => resolve({ stream, fd }))
    stream.once('error', (error) =>
      reject(new MillraceError('USAGE', `--out: can not write ${target}: ${errorText(error)}`, { cause: error })),
    )
  })
}

async function endsInLine(target: string, size: number): Promise<boolean> {
  if (size === 0) return true
  const file = await open(target, 'r')
  try {
    const { buffer } = await file.read(Buffer.alloc(1), 0, 1, size - 1)
    return buffer.toString() === '\n'
  } finally {
    await file.close()
  }
}

function outFailure(target: string, error: NodeJS.ErrnoException, missing: string): MillraceError {
  const code = error.code === 'ENOSPC' ? 'DISK_FULL' : 'INTERNAL'
  return new MillraceError(code, `--out: writing ${target} failed: ${errorText(error)}; ${missing}`, { cause: error })
}
