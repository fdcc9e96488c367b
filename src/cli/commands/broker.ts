import { Command } from 'commander'
import type { CommandDefinition } from '../command-definition.ts'

/** The embedded broker, and a look at everything. */
export const upCommand: CommandDefinition = (contextOf) =>
  new Command('up')
    .description('start Apache Kafka in the data folder and keep it running')
    .option('--port <n>', 'port to listen on; the one of the last time where not given')
    .addHelpText('after', '\nExample:\n  millrace up --port 9092')
    .action(async (flags: { port?: string }, running: Command) => {
      const { startBroker } = await import('../broker-session.ts')
      await startBroker(contextOf(running), flags.port)
    })

export const downCommand: CommandDefinition = (contextOf) =>
  new Command('down')
    .description('stop the Apache Kafka of the data folder')
    .addHelpText('after', '\nExample:\n  millrace down')
    .action(async (_: object, running: Command) => {
      const { stopBroker } = await import('../broker-session.ts')
      await stopBroker(contextOf(running))
    })

export const doctorCommand: CommandDefinition = (contextOf) =>
  new Command('doctor')
    .description('look at everything that a crawl needs; each finding with a fix')
    .addHelpText('after', '\nExample:\n  millrace doctor --brokers kafka:9092')
    .action(async (_: object, running: Command) => {
      const { examine } = await import('../broker-session.ts')
      await examine(contextOf(running))
    })
