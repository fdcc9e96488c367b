import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** The built program. */
export const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

export interface CliResult {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunningCli {
  readonly child: ChildProcess
  readonly stdout: () => string
  readonly stderr: () => string
  readonly done: Promise<CliResult>
}

export interface CliOptions {
  readonly cwd: string
  readonly input?: string
  /** More may be written to the standard input of the child; else it ends behind `input`. */
  readonly keepInputOpen?: boolean
  readonly env?: Readonly<Record<string, string>>
}

/** The command line as a user runs it: the built program in a process of its own. */
export function startCli(args: readonly string[], options: CliOptions): RunningCli {
  // The program must not see that it is run by a test.
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('VITEST') && !name.startsWith('MILLRACE_TEST_'))
  const env = { ...Object.fromEntries(inherited), NO_COLOR: '1', ...options.env }
  const child = spawn(process.execPath, [main, ...args], { cwd: options.cwd, env, stdio: ['pipe', 'pipe', 'pipe'] })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  // A program that ends early closes its standard input; that is for it to explain.
  child.stdin.on('error', () => undefined)
  child.stdin.write(options.input ?? '')
  if (options.keepInputOpen !== true) child.stdin.end()
  const done = new Promise<CliResult>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => resolve({ code, signal, stdout, stderr }))
  })
  return { child, stdout: () => stdout, stderr: () => stderr, done }
}

export function runCli(args: readonly string[], options: CliOptions): Promise<CliResult> {
  return startCli(args, options).done
}

/** NDJSON on stdout, parsed. */
export function lines<T = Record<string, unknown>>(result: CliResult): T[] {
  return result.stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T)
}
