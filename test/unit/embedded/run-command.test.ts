import { describe, expect, it } from 'vitest'
import { runCommand } from '../../../src/embedded/run-command.ts'

describe('the output of a program', () => {
  it('C078: has its characters whole, wherever the pipe has cut it', async () => {
    // Of two bytes each, and one byte before them: what a pipe takes at once is an even number.
    const program = "process.stdout.write('a' + 'ü'.repeat(200_000))"
    const result = await runCommand(process.execPath, ['-e', program], { timeoutMs: 60_000 })
    const output = result.kind === 'done' ? result.output : ''
    expect([result.kind, output.length, output.replaceAll('ü', '')]).toEqual(['done', 65_536, ''])
  })
})
