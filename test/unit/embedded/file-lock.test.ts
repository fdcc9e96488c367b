import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type HeldLock, tryLock, waitForLock } from '../../../src/embedded/file-lock.ts'
import { acquireRunLock } from '../../../src/embedded/run-lock.ts'
import { type Clock, systemClock } from '../../../src/kernel/clock.ts'
import { isMillraceError } from '../../../src/kernel/errors.ts'
import { ownIdentity } from '../../../src/machine/process-identity.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-lock-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

function held(what = 'test'): HeldLock {
  const attempt = tryLock(folder, 'x.lock', what)
  if (attempt.kind !== 'held') throw new Error(`refused by ${attempt.holder.what}`)
  return attempt.lock
}

/** A lock file as another process would have written it. */
function writeHolder(n: number, change: Record<string, unknown>, what = 'an old command'): void {
  writeFileSync(join(folder, `x.lock.${n}`), JSON.stringify({ process: { ...ownIdentity(), ...change }, what, released: false }))
}

describe('the lock between processes', () => {
  it('refuses a second holder and names the first', () => {
    held('millrace run')
    const second = tryLock(folder, 'x.lock', 'other')
    expect(second.kind === 'refused' && second.holder).toEqual({ process: ownIdentity(), what: 'millrace run' })
  })

  it('is free again once it was released, and leaves one file behind', () => {
    for (let round = 0; round < 5; round++) held().release()
    const next = held()
    expect(next.takenOverFrom).toBeUndefined()
    expect(readdirSync(folder)).toEqual(['x.lock.6'])
  })

  it('is taken over from a process that no longer exists', () => {
    writeHolder(7, { pid: 4_194_303 })
    expect(held().takenOverFrom?.what).toBe('an old command')
    expect(readdirSync(folder)).toEqual(['x.lock.8'])
  })

  it('is taken over when the pid belongs to a later process', () => {
    writeHolder(1, { start: 'another boot:1' })
    expect(held().takenOverFrom?.process.pid).toBe(process.pid)
  })

  it.runIf(process.platform === 'linux')('stays with a process of another host, which can not be checked', () => {
    writeHolder(1, { host: 'elsewhere', pid: 4_194_303 })
    expect(tryLock(folder, 'x.lock', 'other').kind).toBe('refused')
  })

  it('is free in a copy of its folder, and held in the folder wherever that is moved to', () => {
    const holder = held('a crawl')
    const [copy, moved] = [`${folder}-copy`, `${folder}-moved`]
    try {
      cpSync(folder, copy, { recursive: true })
      const attempt = tryLock(copy, 'x.lock', 'other')
      expect(attempt.kind === 'held' && attempt.lock.takenOverFrom).toBeUndefined()
      renameSync(folder, moved)
      expect(tryLock(moved, 'x.lock', 'other').kind).toBe('refused')
      holder.release()
      expect(tryLock(moved, 'x.lock', 'other').kind).toBe('held')
    } finally {
      for (const path of [copy, moved]) rmSync(path, { recursive: true, force: true })
    }
  })

  it('counts as written in its folder where it says none, as that of an older version does', () => {
    writeHolder(1, {})
    expect(tryLock(folder, 'x.lock', 'other').kind).toBe('refused')
  })

  it.runIf(process.platform === 'linux')('stays with a process of another host, where the folder may have other numbers', () => {
    const process = { ...ownIdentity(), host: 'elsewhere', pid: 4_194_303 }
    writeFileSync(join(folder, 'x.lock.1'), JSON.stringify({ folder: '1-2', process, what: 'an old command', released: false }))
    expect(tryLock(folder, 'x.lock', 'other').kind).toBe('refused')
  })

  it('is given back where the folder was removed meanwhile, and comes back nowhere', () => {
    const holder = held()
    rmSync(folder, { recursive: true })
    holder.release()
    expect(existsSync(folder)).toBe(false)
  })

  it.each(['', '{', 'null', '{"process":{"pid":"x"}}'])('is free when its file holds %j', (text) => {
    writeFileSync(join(folder, 'x.lock.3'), text)
    expect(held().takenOverFrom).toBeUndefined()
    expect(readdirSync(folder)).toEqual(['x.lock.4'])
  })

  it('is not given back twice: an old release leaves the next holder alone', () => {
    const first = held()
    first.release()
    held('second')
    first.release()
    expect(tryLock(folder, 'x.lock', 'third').kind).toBe('refused')
  })

  it('waits until the holder has released it', async () => {
    const first = held()
    // The holder lets go once the other one has found it held.
    const clock: Clock = {
      ...systemClock,
      sleep: (ms, signal) => {
        first.release()
        return systemClock.sleep(ms, signal)
      },
    }
    await waitForLock({ folder, name: 'x.lock', what: 'waiter', waitMs: 5000, clock })
    expect(JSON.parse(readFileSync(join(folder, 'x.lock.2'), 'utf8'))).toMatchObject({ what: 'waiter', released: false })
  })

  it('gives up waiting with the pid of the holder', async () => {
    held('millrace run')
    const waiting = waitForLock({ folder, name: 'x.lock', what: 'waiter', waitMs: 30, clock: systemClock })
    await expect(waiting).rejects.toThrow(`\`millrace run\` (process ${process.pid}, running since `)
  })

  it('stops waiting when aborted', async () => {
    held()
    const reason = new Error('enough')
    const signal = AbortSignal.abort(reason)
    await expect(waitForLock({ folder, name: 'x.lock', what: 'w', waitMs: 5000, clock: systemClock, signal })).rejects.toBe(reason)
  })
})

describe('the run lock', () => {
  it('refuses a second run, naming pid and start time of the first, and exits with 2', () => {
    const dataDir = join(folder, 'new', 'data')
    const first = acquireRunLock(dataDir, 'millrace run')
    try {
      acquireRunLock(dataDir, 'millrace run')
      expect.unreachable()
    } catch (error) {
      expect(isMillraceError(error, 'DATA_DIR_LOCKED') && error.exitCode).toBe(2)
      expect(String(error)).toContain(`process ${process.pid}, running since ${ownIdentity().startedAt}`)
    }
    first.release()
    acquireRunLock(dataDir, 'millrace run').release()
  })

  it('explains a data folder that is a file', () => {
    const dataDir = join(folder, 'file')
    writeFileSync(dataDir, '')
    expect(() => acquireRunLock(dataDir, 'millrace run')).toThrow(/a file lies where a folder was expected/)
  })
})
