import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { completionScript, SHELLS, type Shell } from '../../../src/cli/completion.ts'
import { buildProgram } from '../../../src/cli/program.ts'

const program = buildProgram(() => {
  throw new Error('nothing is run')
})
const folder = mkdtempSync(join(tmpdir(), 'millrace-completion-'))
const hasShell = (shell: Shell): boolean => spawnSync(shell, ['-c', 'true']).status === 0

afterAll(() => rmSync(folder, { recursive: true }))

/** A shell complains about the language of a user that the machine does not have. */
const env = { ...process.env, LC_ALL: 'C' }

/** What bash offers for a line; its last word is the one that is being typed. */
function offered(line: string): string[] {
  const script = join(folder, 'millrace.bash')
  writeFileSync(script, completionScript(program, 'bash'))
  const words = line.split(' ')
  const quoted = words.map((word) => `'${word}'`).join(' ')
  const ask = `source ${script}; cd ${folder}; COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _millrace; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout, stderr, status } = spawnSync('bash', ['--norc', '-c', ask], { encoding: 'utf8', env })
  expect([status, stderr]).toEqual([0, ''])
  return stdout.split('\n').filter((word) => word !== '')
}

describe('completion', () => {
  it.each(SHELLS)('for %s names every command and option', (shell) => {
    const script = completionScript(program, shell)
    const seen = (name: string): boolean => script.includes(shell === 'fish' ? name.replace(/^--/, '-l ') : name)
    for (const command of program.commands) {
      expect(seen(command.name())).toBe(true)
      for (const inner of [command, ...command.commands])
        for (const { long } of inner.options) expect(long == null || seen(long)).toBe(true)
    }
  })

  it.each(SHELLS.filter(hasShell))('for %s is a script that the shell can read', (shell) => {
    const script = join(folder, `script.${shell}`)
    writeFileSync(script, completionScript(program, shell))
    const { status, stderr } = spawnSync(shell, ['-n', script], { encoding: 'utf8', env })
    expect([status, stderr]).toEqual([0, ''])
  })

  it.runIf(hasShell('bash'))('in bash knows where in the line it is', () => {
    expect(offered('millrace prod')).toEqual(['produce'])
    expect(offered('millrace dead-letters re')).toEqual(['requeue'])
    expect(offered('millrace --data somewhere dead-letters st')).toEqual(['stats'])
    expect(offered('millrace dead-letters requeue --ex')).toEqual(['--execute'])
    expect(offered('millrace audit --cr')).toEqual(['--crawl'])
    expect(offered('millrace produce --lane ')).toEqual(['high', 'normal', 'low'])
    expect(offered('millrace status --js')).toEqual(['--json'])
    // The value of an option is no command.
    expect(offered('millrace --data topics ap')).toEqual([])
    writeFileSync(join(folder, 'book.yaml'), '')
    expect(offered('millrace run --extractor boo')).toEqual(['book.yaml'])
    expect(offered('millrace extractors check boo')).toEqual(['book.yaml'])
  })

  it.runIf(hasShell('fish'))('in fish does too', () => {
    const script = join(folder, 'millrace.fish')
    writeFileSync(script, completionScript(program, 'fish'))
    const first = (line: string): string[] => {
      const { stdout } = spawnSync('fish', ['-c', `source ${script}; complete -C '${line}'`], { encoding: 'utf8' })
      return stdout.split('\n').flatMap((offer) => (offer === '' ? [] : [offer.split('\t')[0] ?? '']))
    }
    expect(first('millrace --data somewhere dead-letters st')).toEqual(['stats'])
    expect(first('millrace produce --lane ').sort()).toEqual(['high', 'low', 'normal'])
  })
})
