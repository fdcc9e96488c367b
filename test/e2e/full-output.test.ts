import { spawnSync } from 'node:child_process'
import { existsSync, openSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { main } from '../support/cli.ts'

const FULL = '/dev/full'

describe.skipIf(!existsSync(FULL))('standard output without room', () => {
  it.each([
    [[], /^error: standard output can not be written: ENOSPC.*\n.*\(DISK_FULL\)\n$/],
    [['--json'], /^\{"error":\{"code":"DISK_FULL".*\}\n$/],
  ])('ends a command with the reason: %j', (flags, expected) => {
    const { status, stderr } = spawnSync(process.execPath, [main, 'config', 'print', ...flags], {
      stdio: ['ignore', openSync(FULL, 'w'), 'pipe'],
      encoding: 'utf8',
    })
    expect(stderr).toMatch(expected)
    expect(status).toBe(1)
  })
})

describe.skipIf(!existsSync(FULL))('standard error without room', () => {
  it('loses its lines, and the command does its work', () => {
    const { status, stdout } = spawnSync(process.execPath, [main, 'config', 'check', '--set', 'fetch.robots=ignore'], {
      stdio: ['ignore', 'pipe', openSync(FULL, 'w')],
      encoding: 'utf8',
    })
    expect([status, stdout]).toEqual([0, expect.stringMatching(/./)])
  })
})
