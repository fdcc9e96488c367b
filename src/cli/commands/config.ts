import { Command } from 'commander'
import { MillraceError } from '../../kernel/errors.ts'
import type { CommandDefinition } from '../command-definition.ts'
import { renderTable, toJson } from '../render.ts'

export const configCommand: CommandDefinition = (contextOf) => {
  const command = new Command('config').description('every option, its value and where it came from')
  command
    .command('print')
    .description('print all options')
    .addHelpText('after', '\nExample:\n  millrace config print --set fetch.concurrency=50')
    .action(async (_, running: Command) => {
      const context = contextOf(running)
      const { describeConfig } = await import('../../config/describe.ts')
      const options = describeConfig(context.loadConfig())
      if (context.globals.json) {
        await context.out(toJson(options))
        return
      }
      const rows = options.map(({ option, value, source }) => [option, value, source])
      await context.out(renderTable([{ title: 'OPTION' }, { title: 'VALUE', flexible: true }, { title: 'FROM', flexible: true }], rows))
    })
  command
    .command('check')
    .description('check the configuration and say what deserves a second look')
    .addHelpText('after', '\nExample:\n  millrace config check --config production.yaml')
    .action(async (_, running: Command) => {
      const context = contextOf(running)
      const loaded = context.loadConfig()
      const [{ configAdvice }, { configurationFindings }, { shadowedRules }, { certificateFindings }, { systemClock }] = await Promise.all([
        import('../../config/advice.ts'),
        import('../../control/inspect/config-check.ts'),
        import('../../control/sites/shadowed-rules.ts'),
        import('../../control/runtime/tls-config.ts'),
        import('../../kernel/clock.ts'),
      ])
      const { faults, advice: ofGroups } = await configurationFindings(loaded.config)
      if (faults[0] !== undefined) throw new MillraceError(faults[0].code, faults.map(({ message }) => message).join('\n'))
      const ends = certificateFindings(loaded.config, systemClock.now()).map(({ text }) => text)
      const advice = [...configAdvice(loaded.config), ...shadowedRules(loaded.config), ...ofGroups, ...ends]
      if (context.globals.json) await context.out(toJson({ ok: true, file: loaded.file ?? null, advice }))
      else {
        for (const line of advice) context.note(`note: ${line}`)
        await context.out(`the configuration is valid${loaded.file === undefined ? '' : ` (${loaded.file})`}`)
      }
    })
  return command
}
