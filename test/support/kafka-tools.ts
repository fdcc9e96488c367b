import { spawn } from 'node:child_process'
import { findRuntime } from '../../src/embedded/broker-runtime.ts'
import { brokerOptions, RecordingObserver } from './embedded.ts'

export interface ToolResult {
  readonly code: number | null
  readonly stdout: Buffer
  readonly stderr: string
}

/** Kafka's own command line, from the jars of the embedded broker: `org.apache.kafka.tools…`, as the scripts in its bin folder run it. */
export async function kafkaTool(mainClass: string, args: readonly string[], input = ''): Promise<ToolResult> {
  const runtime = await findRuntime({ ...brokerOptions('.', new RecordingObserver()), boundTo: 'java' })
  if (runtime.kind !== 'java') throw new Error('the tools of Kafka need Java')
  return run(
    runtime.java.command,
    ['-XX:TieredStopAtLevel=1', '-Dorg.slf4j.simpleLogger.defaultLogLevel=error', '-cp', runtime.jars.jars.join(':'), mainClass, ...args],
    input,
  )
}

/** Shape: cwd: the folder of the program; left out: that of the tests. */
export function run(command: string, args: readonly string[], input = '', cwd?: string): Promise<ToolResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], cwd })
    const out: Buffer[] = []
    let stderr = ''
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk))
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    child.once('error', reject)
    child.once('close', (code) => resolve({ code, stdout: Buffer.concat(out), stderr }))
    child.stdin.on('error', () => undefined)
    child.stdin.end(input)
  })
}
