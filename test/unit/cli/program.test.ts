import type { Command } from 'commander'
import { describe, expect, it } from 'vitest'
import type { CommandContext } from '../../../src/cli/context.ts'
import { buildProgram } from '../../../src/cli/program.ts'

/** What the command line says to these arguments, up to the action. */
async function answerTo(...args: string[]): Promise<string> {
  let told = ''
  const program = buildProgram(() => {
    throw new Error('the action was called')
  })
  const listen = (command: Command): void => {
    command.configureOutput({ writeErr: (text) => (told += text), writeOut: (text) => (told += text) })
    for (const inner of command.commands) listen(inner)
  }
  listen(program)
  await program.parseAsync(['node', 'millrace', ...args]).catch((error: Error) => {
    if (told === '') told = error.message
  })
  return told.trim()
}

/** Each command that does something, by its words. */
function* actions(command: Command, words: readonly string[] = []): Generator<{ words: readonly string[]; command: Command }> {
  if (command.commands.length === 0) yield { words, command }
  for (const inner of command.commands) yield* actions(inner, [...words, inner.name()])
}

describe('an option that is misspelt', () => {
  it('names the nearest one where that must be there, and where it need not', async () => {
    expect(await answerTo('replay', 'plan', '--extracto', 'x')).toBe("error: unknown option '--extracto'\n(Did you mean --extractor?)")
    expect(await answerTo('replay', '--extracto', 'x')).toBe("error: unknown option '--extracto'\n(Did you mean --extractor?)")
    expect(await answerTo('run', 'http://a.test/', '--extracto', 'x')).toMatch(/Did you mean .*--extractor/)
    expect(await answerTo('replay', 'plan')).toBe("error: required option '--extractor <name|file>' not specified")
    expect(await answerTo('replay', 'plan', '--extractor', 'x')).toBe('the action was called')
  })

  it('names it in every command that has options', async () => {
    const program = buildProgram((): CommandContext => {
      throw new Error('not called')
    })
    for (const { words, command } of actions(program)) {
      const long = command.options.find(({ long }) => long !== undefined && long.length > 5)?.long
      if (long === undefined) continue
      const misspelt = `${long.slice(0, -1)}${long.endsWith('x') ? 'y' : 'x'}`
      const args = command.registeredArguments.map(() => 'x')
      expect(await answerTo(...words, ...args, misspelt), words.join(' ')).toContain(`error: unknown option '${misspelt}'\n(Did you mean`)
    }
  })
})

describe('a crawl without a name', () => {
  it.each([
    ['run', 'http://a.test/'],
    ['produce', 'http://a.test/'],
    ['consume'],
    ['audit'],
    ['replay', 'plan', '--extractor', 'x'],
    ['replay', 'preview', '--extractor', 'x'],
    ['replay', 'run', '--extractor', 'x'],
  ])('is refused by %s', async (...words) => {
    for (const name of ['', '  ']) expect(await answerTo(...words, '--crawl', name)).toBe('--crawl: a crawl needs a name; none was given')
    expect(await answerTo(...words, '--crawl', 'a\nb')).toContain('has control characters')
    expect(await answerTo(...words, '--crawl', 'spring')).toBe('the action was called')
  })
})

describe('--json', () => {
  it.each([[['run', '--nonsense']], [['nonsense']], [['topics', 'plan', '--nonsense']]])(
    'tells what is wrong with %j as JSON',
    async (args) => {
      let told = ''
      const program = buildProgram(
        () => {
          throw new Error('the action was called')
        },
        { json: true },
      )
      const listen = (command: Command): void => {
        command.configureOutput({ writeErr: (text) => (told += text) })
        for (const inner of command.commands) listen(inner)
      }
      listen(program)
      await expect(program.parseAsync(['node', 'millrace', ...args])).rejects.toThrow()
      expect(JSON.parse(told)).toMatchObject({ error: { code: 'USAGE', message: expect.stringContaining('nonsense') } })
    },
  )
})
