import { describe, expect, it } from 'vitest'
import { storeFinding } from '../../../../src/control/inspect/doctor.ts'
import type { StoreHealth } from '../../../../src/state/state-store.ts'

const redis = { kind: 'redis', version: '7', location: 'redis://r', persistence: 'aof', sizeBytes: 0 } as const

describe('what doctor says of the state store', () => {
  it.each<[string, StoreHealth, string, RegExp]>([
    ['evicts', { ...redis, maxmemoryPolicy: 'allkeys-lru' }, 'fail', /evicts keys \(allkeys-lru\)/],
    ['does not tell whether it evicts', { ...redis, maxmemoryPolicy: 'unknown' }, 'warn', /does not tell its maxmemory-policy/],
    [
      'tells nothing',
      { ...redis, version: 'unknown', persistence: 'unknown', maxmemoryPolicy: 'unknown' },
      'warn',
      /^redis of unknown version at redis:\/\/r does not tell/,
    ],
    ['keeps nothing', { ...redis, maxmemoryPolicy: 'noeviction', persistence: 'none' }, 'warn', /keeps nothing over a restart/],
    [
      'has snapshots alone',
      { ...redis, maxmemoryPolicy: 'noeviction', persistence: 'rdb' },
      'warn',
      /loses what it has learnt since its last/,
    ],
    ['is well', { ...redis, maxmemoryPolicy: 'noeviction' }, 'ok', /redis 7 at/],
  ])('of one that %s', (_, health, level, text) => {
    expect(storeFinding(health)).toMatchObject({ level, text: expect.stringMatching(text) })
  })
})
