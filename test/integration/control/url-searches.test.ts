import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../../../src/config/load.ts'
import { lineage } from '../../../src/control/inspect/lineage.ts'
import { Runtime } from '../../../src/control/runtime/runtime.ts'
import { applyTopics } from '../../../src/control/runtime/topics.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'
import { brokers, uniqueName } from '../../support/services.ts'

const URL_ASKED = 'https://books.example/catalogue/1'
const MIB = 1_048_576

let folder: string
let prefix: string
let opened: Runtime[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-searches-'))
  prefix = `${uniqueName('searches')}.`
  opened = []
})
afterEach(async () => {
  for (const runtime of opened) await runtime.close()
  rmSync(folder, { recursive: true })
})

async function open(...sets: string[]): Promise<Runtime> {
  const common = [`brokers=${brokers().join(',')}`, `topics.prefix=${prefix}`, `data=${folder}`]
  const { config } = loadConfig({ sets: [...common, ...sets], flags: {}, environment: {} })
  const runtime = await Runtime.open({ config, owner: 'a test', clock: systemClock, observer: silentObserver })
  opened.push(runtime)
  await applyTopics(runtime)
  return runtime
}

/** The most bytes of buffers that were alive at a time, beyond those before. */
async function mostHeld(work: Promise<unknown>): Promise<number> {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  const held = (): number => {
    gc()
    return process.memoryUsage().arrayBuffers
  }
  const before = held()
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, held())
  }, 5)
  await work.finally(() => clearInterval(timer))
  return most - before
}

describe('the searches of lineage', () => {
  it('hold a piece of the log, however many messages share a word with the URL', async () => {
    const runtime = await open('topics.partitions.urls=1', 'topics.partitions.html=1')
    const producer = await runtime.producer()
    for (let index = 0; index < 160; index += 1) {
      const key = `${URL_ASKED}${index}`
      await producer.send([{ topic: runtime.topics.html, partition: 0, key, value: randomBytes(MIB / 2) }])
    }
    const failed = expect(lineage(runtime, URL_ASKED)).rejects.toMatchObject({ code: 'USAGE' })
    expect(await mostHeld(failed)).toBeLessThan(60 * MIB)
  })
})
