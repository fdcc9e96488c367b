import { Argument, Command } from 'commander'
import type { CommandDefinition } from '../command-definition.ts'
import { completionScript, SHELLS, type Shell } from '../completion.ts'

export const completionCommand: CommandDefinition = (contextOf) =>
  new Command('completion')
    .description('a script that makes your shell complete commands and options')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .addHelpText(
      'after',
      '\nExample:\n  source <(millrace completion bash)\n  millrace completion zsh > ~/.zfunc/_millrace\n  millrace completion fish > ~/.config/fish/completions/millrace.fish',
    )
    .action(async (shell: Shell, _: object, running: Command) => {
      let program = running
      while (program.parent !== null) program = program.parent
      await contextOf(running).out(completionScript(program, shell).trimEnd())
    })
