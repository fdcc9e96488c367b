import { down, up } from '../control/broker.ts'
import { doctor, type Finding } from '../control/doctor.ts'
import { systemClock } from '../kernel/clock.ts'
import { MillraceError } from '../kernel/errors.ts'
import type { CommandContext } from './context.ts'
import { toJson } from './render.ts'

export async function startBroker(context: CommandContext, port: string | undefined): Promise<void> {
  const { config } = context.loadConfig()
  const { brokers, clusterId } = await up(verb(context, config), port === undefined ? undefined : portOf(port))
  await context.out(
    context.globals.json ? toJson({ brokers: [brokers], clusterId }) : `Apache Kafka is up on ${brokers}; \`millrace down\` stops it`,
  )
}

export async function stopBroker(context: CommandContext): Promise<void> {
  const { config } = context.loadConfig()
  const wasUp = await down(verb(context, config))
  await context.out(
    context.globals.json ? toJson({ stopped: wasUp }) : wasUp ? 'Apache Kafka has stopped' : `no Apache Kafka runs in ${config.data}`,
  )
}

/** Ends with 1 when something must be mended, with 4 when it is a dependency that can't be reached. */
export async function examine(context: CommandContext): Promise<void> {
  const { config } = context.loadConfig()
  const findings: Finding[] = []
  for await (const finding of doctor(verb(context, config))) {
    findings.push(finding)
    if (context.globals.json) continue
    await context.out(`${finding.level.padEnd(4)}  ${finding.check}: ${finding.text}`)
    if (finding.fix !== undefined && finding.level !== 'ok') await context.out(`      ${finding.fix}`)
  }
  if (context.globals.json) await context.out(toJson(findings))
  if (findings.some(({ unreachable }) => unreachable === true)) context.setExitCode(4)
  else if (findings.some(({ level }) => level === 'fail')) context.setExitCode(1)
}

function verb(context: CommandContext, config: ReturnType<CommandContext['loadConfig']>['config']): Parameters<typeof down>[0] {
  return { config, clock: systemClock, observer: context.observer, signal: context.draining }
}

function portOf(text: string): number {
  const port = Number(text)
  if (Number.isSafeInteger(port) && port > 0 && port < 65_536) return port
  throw new MillraceError('USAGE', `--port: ${JSON.stringify(text)} is no port`)
}
