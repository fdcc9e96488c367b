import { describe, expect, it } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import { consumerSettingsOf } from '../../../../src/control/runtime/runtime.ts'

const settings = (isEmbedded: boolean, ...sets: string[]) =>
  consumerSettingsOf(loadConfig({ sets, flags: {}, environment: {} }).config, isEmbedded)

describe('a member of a group', () => {
  it('is missed after half a minute, and sooner on our own broker, where nobody else waits for it', () => {
    expect(settings(false).sessionTimeoutMs).toBe(30_000)
    expect(settings(true).sessionTimeoutMs).toBe(10_000)
  })

  it('waits without end for our own broker, whose end is told by whoever looks after it', () => {
    expect([settings(false).awayBudgetMs, settings(true).awayBudgetMs]).toEqual([undefined, Number.POSITIVE_INFINITY])
  })

  it('is missed after what the configuration says', () => {
    for (const isEmbedded of [true, false]) expect(settings(isEmbedded, 'kafka.sessionTimeout=12s').sessionTimeoutMs).toBe(12_000)
  })
})
