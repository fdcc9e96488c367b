import { constants, createReadStream, openSync } from 'node:fs'
import { access, open, stat } from 'node:fs/promises'
import { Socket } from 'node:net'
import { errorText, MillraceError } from '../kernel/errors.ts'

/**
 * A file that can't be read is told before anything is started. Of regular files alone it is tried: a pipe that is opened and closed again
 * has lost its writer, and what that had written. Errors: USAGE naming the option and the path.
 */
export async function refuseUnreadable(path: string, option: string): Promise<void> {
  try {
    const found = await stat(path)
    if (found.isDirectory()) throw new Error('it is a folder')
    if (found.isSocket()) throw new Error('it is a socket')
    if (found.isFile()) await (await open(path)).close()
    else await access(path, constants.R_OK)
  } catch (cause) {
    throw new MillraceError('USAGE', `${option}: can not read ${path}: ${errorText(cause)}`, { cause })
  }
}

/**
 * What a file holds, from begin to end; of `-` standard input. It is opened once, when the first piece is asked for. Errors: USAGE where
 * it can be read no further, as on a bad disk.
 */
export async function* inputOf(path: string): AsyncGenerator<Buffer> {
  const pieces = path === '-' ? process.stdin : (await isPipe(path)) ? pipeOf(path) : createReadStream(path)
  try {
    for await (const piece of pieces) yield piece
  } catch (cause) {
    throw new MillraceError('USAGE', `can not read on in ${path}: ${errorText(cause)}`, { cause })
  }
}

/**
 * A read that waits for the writer of a pipe would hold a thread, and the process could not end before the writer comes. On Linux alone it
 * can be waited for without one: elsewhere a pipe that nobody has opened for writing looks like one at its end.
 */
async function isPipe(path: string): Promise<boolean> {
  return process.platform === 'linux' && (await stat(path)).isFIFO()
}

function pipeOf(path: string): AsyncIterable<Buffer> {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  return new Socket({ fd, readable: true, writable: false })
}
