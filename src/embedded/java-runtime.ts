import { join } from 'node:path'
import { runCommand } from './run-command.ts'

/** Kafka 4 brokers need this one. */
export const MIN_JAVA = 17

export interface Java {
  readonly kind: 'java'
  /** Path or name of the program. */
  readonly command: string
  readonly major: number
  /** All that `java -version` says: tells one build from another. */
  readonly build: string
}

/** Why there is none, for the message that names all ways to a broker. */
export interface NoJava {
  readonly kind: 'none'
  readonly reason: string
}

/** The first Java that is new enough: that of `javaHome`, then the one on the PATH. */
export async function findJava(javaHome: string | undefined, signal?: AbortSignal): Promise<Java | NoJava> {
  const reasons: string[] = []
  const candidates = javaHome === undefined || javaHome === '' ? ['java'] : [join(javaHome, 'bin', 'java'), 'java']
  for (const command of candidates) {
    const where = command === 'java' ? 'on the PATH' : `at ${command}`
    const result = await runCommand(command, ['-version'], { timeoutMs: 20_000, ...(signal === undefined ? {} : { signal }) })
    if (result.kind === 'missing') reasons.push(`no java ${where}`)
    else if (result.kind === 'failed') reasons.push(`java ${where} does not run (${result.how})`)
    else {
      const major = javaMajor(result.output)
      if (major === undefined) reasons.push(`java ${where} does not say its version`)
      else if (major < MIN_JAVA) reasons.push(`java ${where} is version ${major}, ${MIN_JAVA} or newer is needed`)
      else return { kind: 'java', command, major, build: result.output.trim() }
    }
  }
  return { kind: 'none', reason: reasons.join('; ') }
}

/** Major version in the output of `java -version`: 17 of `"17.0.15"`, 8 of `"1.8.0_292"`. */
export function javaMajor(output: string): number | undefined {
  const match = /version "(\d+)(?:\.(\d+))?/.exec(output)
  if (match?.[1] === undefined) return undefined
  const first = Number(match[1])
  return first === 1 && match[2] !== undefined ? Number(match[2]) : first
}
