import { spawn } from 'node:child_process'

/** How a command ended. `missing`: there is no such program. Output is kept to its last 64 KiB, stdout and stderr in one. */
export type CommandResult =
  | { readonly kind: 'done'; readonly output: string }
  | { readonly kind: 'failed'; readonly output: string; readonly how: string }
  | { readonly kind: 'missing' }

const KEPT_OUTPUT = 64 * 1024

/** Runs a program to its end. Units: ms. Errors: `signal.reason` when aborted; the program is ended then, and at its time limit. */
export function runCommand(
  command: string,
  args: readonly string[],
  options: { timeoutMs: number; cwd?: string; signal?: AbortSignal },
): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    if (options.signal?.aborted) {
      reject(options.signal.reason)
      return
    }
    const child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: options.timeoutMs,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    })
    let output = ''
    const keep = (text: string): void => {
      output = (output + text).slice(-KEPT_OUTPUT)
    }
    // A character may lie in two chunks: each stream puts its own together.
    child.stdout.setEncoding('utf8').on('data', keep)
    child.stderr.setEncoding('utf8').on('data', keep)
    const onAbort = (): void => {
      child.kill()
    }
    options.signal?.addEventListener('abort', onAbort, { once: true })
    const settle = (end: () => void): void => {
      options.signal?.removeEventListener('abort', onAbort)
      if (options.signal?.aborted) reject(options.signal.reason)
      else end()
    }
    child.once('error', (error: NodeJS.ErrnoException) => {
      settle(() => resolve(error.code === 'ENOENT' ? { kind: 'missing' } : { kind: 'failed', output, how: error.message }))
    })
    child.once('close', (code, killedBy) => {
      settle(() => {
        if (code === 0) resolve({ kind: 'done', output })
        else resolve({ kind: 'failed', output, how: code === null ? `it was ended by ${killedBy}` : `exit code ${code}` })
      })
    })
  })
}

/** The last lines of an output, for an error message. */
export function tail(output: string, lines: number): string {
  return output.trim().split('\n').slice(-lines).join('\n')
}
