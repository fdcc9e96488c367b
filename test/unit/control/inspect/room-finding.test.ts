import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import { roomFinding } from '../../../../src/control/inspect/doctor.ts'

const MIB = 1_048_576
const levelOf = (freeMib: number, ...sets: string[]): string =>
  roomFinding(loadConfig({ sets, flags: {}, environment: {} }).config, '/data', freeMib * MIB).level

describe('what doctor says of the room in the data folder', () => {
  it('goes by what fetching pauses for, on our own broker', () => {
    expect([levelOf(2_000), levelOf(800), levelOf(800, 'fetch.minFreeDisk=512MiB')]).toEqual(['ok', 'fail', 'ok'])
    expect(levelOf(20, 'fetch.minFreeDisk=1MiB')).toBe('fail')
  })

  it('is a remark alone on given brokers, where nothing pauses for it', () => {
    expect([levelOf(800, 'brokers=kafka:9092'), levelOf(20, 'brokers=kafka:9092')]).toEqual(['ok', 'warn'])
  })
})
