import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { endFormerRegistration, wasKilled } from '../../../src/embedded/former-registration.ts'
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

describe('the logs of a broker', () => {
  it('are those of a killed one where nothing says that it was stopped in order', () => {
    expect(wasKilled(dataFolder({ [METADATA]: 'records' }))).toBe(true)
    expect(wasKilled(dataFolder({ [METADATA]: 'records', '.kafka_cleanshutdown': '{}' }))).toBe(false)
  })

  it('are new where nothing was written yet', () => {
    expect(wasKilled(dataFolder({}))).toBe(false)
    expect(wasKilled(dataFolder({ '__cluster_metadata-0/00000000000000000000-0000000000.checkpoint': 'snapshot' }))).toBe(false)
  })
})

describe('taking a killed broker out of service', () => {
  /** `write` appends to the log of the controller. */
  const saying = async (script: string): Promise<string> => {
    const data = dataFolder({ [METADATA]: 'records' })
    const write = `write() { echo more >> '${join(data, METADATA)}'; };`
    return endFormerRegistration({ command: 'sh', args: ['-c', write + script], mark: 'none', data, cwd: tmpdir(), clock: systemClock })
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
    const round = 'sleep 0.3; write;'
    expect(await saying(`${active} ${round} ${round} sleep 0.5; exit`)).toBe('failed')
    expect(await saying(`${active} while true; do ${round} done`)).toBe('was-fenced')
  })

  it('ends with the supervisor, whatever the controller is at', async () => {
    const stop = new AbortController()
    const data = dataFolder({ [METADATA]: 'records' })
    const run = { command: 'sh', args: ['-c', 'exec sleep 60'], mark: 'none', data, cwd: tmpdir(), clock: systemClock }
    const ending = endFormerRegistration({ ...run, signal: stop.signal })
    stop.abort()
    expect(await ending).toBe('failed')
  })

  it('fails where the controller does not start', async () => {
    expect(await saying('exit 1')).toBe('failed')
    const none = { command: '/none', args: [], mark: 'none', data: '/none', cwd: tmpdir(), clock: systemClock }
    expect(await endFormerRegistration(none)).toBe('failed')
  })
})
