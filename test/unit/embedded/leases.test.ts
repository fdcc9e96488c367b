import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type BrokerFolder, brokerFolder, createBrokerFolder } from '../../../src/embedded/broker-folder.ts'
import { addLease, liveLeases } from '../../../src/embedded/leases.ts'
import { identityOf, isAlive, ownIdentity } from '../../../src/machine/process-identity.ts'

let dataDir: string
let folder: BrokerFolder
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'millrace-leases-'))
  folder = brokerFolder(dataDir)
  createBrokerFolder(folder)
})
afterEach(() => rmSync(dataDir, { recursive: true, force: true }))

describe('leases', () => {
  it('count each user of one process, and lose each once', () => {
    const first = addLease(folder, 'run')
    const second = addLease(folder, 'consume')
    expect(
      liveLeases(folder)
        .map((lease) => lease.owner)
        .sort(),
    ).toEqual(['consume', 'run'])
    first()
    first()
    expect(liveLeases(folder)).toEqual([{ process: ownIdentity(), owner: 'consume' }])
    second()
    expect(readdirSync(folder.leases)).toEqual([])
  })

  it('of dead processes, of reused pids and of other hosts are swept, and so is what is no lease', () => {
    const own = ownIdentity()
    const write = (name: string, value: unknown) => writeFileSync(join(folder.leases, name), JSON.stringify(value))
    write('1.json', { process: { ...own, pid: 4_194_303 }, owner: 'dead' })
    write('2.json', { process: { ...own, start: 'earlier' }, owner: 'reused' })
    write('3.json', { process: { ...own, pid: process.ppid, host: 'elsewhere' }, owner: 'container' })
    write('4.json', { owner: 'nobody' })
    writeFileSync(join(folder.leases, '5.json'), '{')
    addLease(folder, 'alive')
    expect(liveLeases(folder).map((lease) => lease.owner)).toEqual(['alive'])
    expect(readdirSync(folder.leases)).toHaveLength(1)
  })

  it('stay with a process that runs when its host gets another name', () => {
    addLease(folder, 'a crawl')
    const [name = ''] = readdirSync(folder.leases)
    const text = readFileSync(join(folder.leases, name), 'utf8')
    writeFileSync(join(folder.leases, name), text.replace(/"host": ?"[^"]*"/, '"host": "as-it-was-called"'))
    expect(liveLeases(folder).map((lease) => lease.owner)).toEqual(['a crawl'])
  })

  it('are of the folder that they were taken in: a copy has none of them, one that was moved has all', () => {
    addLease(folder, 'a crawl')
    const copy = brokerFolder(join(dataDir, 'copy'))
    cpSync(folder.path, copy.path, { recursive: true })
    expect(liveLeases(copy)).toEqual([])
    const moved = brokerFolder(join(dataDir, 'moved'))
    mkdirSync(join(dataDir, 'moved'))
    renameSync(folder.path, moved.path)
    expect(liveLeases(moved).map((lease) => lease.owner)).toEqual(['a crawl'])
  })

  it('of an older version, which say no folder, count', () => {
    writeFileSync(join(folder.leases, '1.json'), JSON.stringify({ process: ownIdentity(), owner: 'a crawl' }))
    expect(liveLeases(folder).map((lease) => lease.owner)).toEqual(['a crawl'])
  })

  it('of a folder that is gone are none', () => {
    expect(liveLeases(brokerFolder(join(dataDir, 'gone')))).toEqual([])
  })
})

describe('the identity of a process', () => {
  it('is the same each time, and alive', () => {
    expect(identityOf(process.pid)).toEqual(ownIdentity())
    expect(isAlive(ownIdentity())).toBe(true)
    expect(Date.parse(ownIdentity().startedAt)).toBeLessThanOrEqual(Date.now())
    expect(Date.parse(ownIdentity().startedAt)).toBeGreaterThan(Date.now() - process.uptime() * 1000 - 5000)
  })

  it('differs from that of its parent', () => {
    expect(identityOf(process.ppid)?.start).not.toBe(ownIdentity().start)
  })

  it('is none for a pid that nobody has', () => {
    expect(identityOf(4_194_303)).toBeUndefined()
  })
})
