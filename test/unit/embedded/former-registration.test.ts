import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { endFormerRegistration, type FencingRun, isRegistered } from '../../../src/embedded/former-registration.ts'
import { systemClock } from '../../../src/kernel/clock.ts'

const folders: string[] = []
function dataFolder(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-former-'))
  folders.push(folder)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

const METADATA = '__cluster_metadata-0/00000000000000000000.log'

const registered = (data: string): boolean => isRegistered({ data, note: join(data, 'fenced.json') })

describe('the logs of a broker', () => {
  it('are those of a registered one whether it was stopped in order or killed', () => {
    expect(registered(dataFolder({ [METADATA]: 'records' }))).toBe(true)
    expect(registered(dataFolder({ [METADATA]: 'records', '.kafka_cleanshutdown': '{}' }))).toBe(true)
  })

  it('are new where nothing was written yet', () => {
    expect(registered(dataFolder({}))).toBe(false)
    expect(registered(dataFolder({ '__cluster_metadata-0/00000000000000000000-0000000000.checkpoint': 'snapshot' }))).toBe(false)
  })

  it('are those of a fenced one until its controller has written more, and a broken note says nothing', () => {
    const data = dataFolder({ [METADATA]: 'records', 'fenced.json': '{"00000000000000000000.log":7}' })
    expect(registered(data)).toBe(false)
    appendFileSync(join(data, METADATA), 'more')
    expect(registered(data)).toBe(true)
    writeFileSync(join(data, 'fenced.json'), '{')
    expect(registered(data)).toBe(true)
  })
})

describe('taking a broker that has ended out of service', () => {
  const runOf = (script: string, data: string): FencingRun => {
    const options = { mark: 'none', data, note: join(data, 'fenced.json'), cwd: tmpdir(), clock: systemClock, limitMs: 60_000 }
    return { ...options, command: 'sh', args: ['-c', script] }
  }
  /** `write` appends to the log of the controller. */
  const saying = async (script: string): Promise<string> => {
    const data = dataFolder({ [METADATA]: 'records' })
    const write = `write() { echo more >> '${join(data, METADATA)}'; };`
    const result = await endFormerRegistration(runOf(write + script, data))
    // What is done is noted, and nothing else.
    expect(registered(data)).toBe(result === 'failed')
    return result
  }
  const fences = 'echo "Fencing broker 1 at epoch 13 because its session has timed out.";'

  it('ends once what the controller says about fencing it stands in its log', async () => {
    expect(await saying(`${fences} write; while sleep 0.2; do write; done`)).toBe('fenced')
  })

  it('does not go by the word alone, which comes before the deed', async () => {
    expect(await saying(`write; ${fences} sleep 0.5; exit`)).toBe('failed')
  })

  it('ends when the controller has been active for some rounds of its own and has fenced none, since the broker was fenced before', async () => {
    const active = 'echo "Performing controller activation." >&2;'
    const round = 'sleep 0.05; write;'
    expect(await saying(`${active} ${round} ${round} sleep 0.5; exit`)).toBe('failed')
    expect(await saying(`${active} while true; do ${round} done`)).toBe('was-fenced')
  })

  it('ends with the supervisor, whatever the controller is at', async () => {
    const stop = new AbortController()
    const data = dataFolder({ [METADATA]: 'records' })
    const ending = endFormerRegistration({ ...runOf('exec sleep 60', data), signal: stop.signal })
    stop.abort()
    expect(await ending).toBe('failed')
  })

  it('gives up at its limit', async () => {
    const data = dataFolder({ [METADATA]: 'records' })
    expect(await endFormerRegistration({ ...runOf('exec sleep 60', data), limitMs: 100 })).toBe('failed')
  })

  it('fails where the controller does not start', async () => {
    expect(await saying('exit 1')).toBe('failed')
    expect(await endFormerRegistration({ ...runOf('', '/none'), command: '/none', cwd: '/none' })).toBe('failed')
  })
})
