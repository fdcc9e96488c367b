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
  const saying = (script: string): ReturnType<typeof endFormerRegistration> =>
    endFormerRegistration({ command: 'sh', args: ['-c', script], mark: 'none', cwd: tmpdir(), clock: systemClock })

  it('ends as soon as the controller says that it fences it', async () => {
    expect(await saying('echo "Fencing broker 1 at epoch 13 because its session has timed out."; exec sleep 60')).toBe('fenced')
  })

  it('ends soon after the controller is active where the broker was fenced before', async () => {
    expect(await saying('echo "Performing controller activation." >&2; exec sleep 60')).toBe('was-fenced')
  })

  it('fails where the controller does not start', async () => {
    expect(await saying('exit 1')).toBe('failed')
    expect(await endFormerRegistration({ command: '/none', args: [], mark: 'none', cwd: tmpdir(), clock: systemClock })).toBe('failed')
  })
})
