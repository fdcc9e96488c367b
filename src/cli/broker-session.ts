import type { Config } from '../config/options.ts'
import { type BrokerVerb, down, up } from '../control/broker.ts'
import { doctor, type Finding } from '../control/inspect/doctor.ts'
import { systemClock } from '../kernel/clock.ts'
import { port } from './arguments.ts'
import type { CommandContext } from './context.ts'
import { toJson } from './render.ts'

export async function startBroker(context: CommandContext, given: string | undefined): Promise<void> {
  const { config } = context.loadConfig()
  const { brokers, clusterId } = await up(verb(context, config), given === undefined ? undefined : port(given, '--port'))
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

function verb(context: CommandContext, config: Config): BrokerVerb {
  return { config, clock: systemClock, observer: context.observer, signal: context.draining }
}
