import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../../../../src/config/load.ts'
import { type ProduceReport, produce } from '../../../../src/control/crawls/produce.ts'
import { Runtime } from '../../../../src/control/runtime/runtime.ts'
import { applyTopics } from '../../../../src/control/runtime/topics.ts'
import { systemClock } from '../../../../src/kernel/clock.ts'
import { silentObserver } from '../../../../src/kernel/observe.ts'
import { committed } from '../../../support/deployment.ts'
import { brokers, uniqueName } from '../../../support/services.ts'

let runtime: Runtime
beforeEach(async () => {
  const sets = [`brokers=${brokers().join(',')}`, `topics.prefix=${uniqueName('produce')}.`, 'topics.partitions.urls=1']
  const { config } = loadConfig({ sets, flags: {}, environment: {} })
  runtime = await Runtime.open({ config, owner: 'a test', clock: systemClock, observer: silentObserver })
  await applyTopics(runtime)
})
afterEach(() => runtime.close())

describe('producing', () => {
  it('tells what is written before anything that may fail or be stopped', async () => {
    const seeds = ['http://a.example/', 'nonsense', 'http://b.example/'].map((text, index) => ({ text, line: index + 1 }))
    const template = {
      crawlId: 'c',
      lane: 'normal',
      maxDepth: 0,
      headers: {},
      meta: {},
      notBefore: null,
      expiresAt: null,
      ifChanged: false,
    } as const
    const told: Omit<ProduceReport, 'interrupted'>[] = []
    const away = new Error('the state store is away')
    const producing = produce(runtime, seeds, template, {
      onProgress: (report) => told.push(report),
      accept: () => Promise.reject(away),
    })
    await expect(producing).rejects.toBe(away)
    expect(told).toMatchObject([{ produced: 2, badCount: 1, bad: [{ line: 2 }] }])
    expect(await committed(runtime, runtime.topics.urls.normal)).toHaveLength(2)
  })
})
