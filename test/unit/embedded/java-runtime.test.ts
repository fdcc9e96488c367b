import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { brokerFolder, createBrokerFolder } from '../../../src/embedded/broker-folder.ts'
import { findRuntime } from '../../../src/embedded/broker-runtime.ts'
import { findJava, javaMajor } from '../../../src/embedded/java-runtime.ts'
import { archivePath, javaLaunch, placeArchive, readLaunchSpec, writeLaunchSpec } from '../../../src/embedded/launch-spec.ts'
import { runCommand } from '../../../src/embedded/run-command.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { isMillraceError } from '../../../src/kernel/errors.ts'
import { silentObserver } from '../../../src/kernel/observe.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'millrace-java-'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

function fakeJava(version: string): string {
  mkdirSync(join(root, 'bin'))
  writeFileSync(join(root, 'bin', 'java'), `#!/bin/sh\necho 'openjdk version "${version}"' >&2\n`)
  chmodSync(join(root, 'bin', 'java'), 0o755)
  return root
}

describe('the version of Java', () => {
  it.each([
    ['openjdk version "17.0.15" 2025-04-15', 17],
    ['openjdk version "25" 2025-09-16', 25],
    ['java version "1.8.0_292"', 8],
    ['openjdk version "21-ea" 2023-09-19', 21],
    ['zsh: command not found', undefined],
  ])('in %j is %j', (output, major) => {
    expect(javaMajor(output)).toBe(major)
  })

  it('decides: that of JAVA_HOME comes first when it is new enough', async () => {
    const home = fakeJava('21.0.2')
    expect(await findJava(home)).toMatchObject({ kind: 'java', command: join(home, 'bin', 'java'), major: 21 })
  })

  it('that is too old is passed over', async () => {
    const found = await findJava(fakeJava('11.0.2'))
    expect(found.kind === 'java' ? found.command : found.reason).toMatch(/^java$|is version 11, 17 or newer is needed/)
  })
})

describe('a machine that can not start a broker', () => {
  it('gets an error that names all four ways', async () => {
    const error = await findRuntime({
      dataDir: root,
      cacheDir: join(root, 'cache'),
      installMissing: false,
      boundTo: 'docker',
      clock: systemClock,
      observer: silentObserver,
    }).catch((reason: unknown) => reason)
    if (!isMillraceError(error, 'KAFKA_NOT_AVAILABLE')) {
      // A Docker engine answers on this machine: then that is the way.
      expect(error).toEqual({ kind: 'docker' })
      return
    }
    expect(error.exitCode).toBe(4)
    for (const way of ['--brokers', 'millrace up', 'Java 17', 'Docker engine']) expect(error.message).toContain(way)
  })
})

describe('the command line of the broker', () => {
  const java = { kind: 'java' as const, command: 'java', major: 17, build: 'openjdk version "17.0.15"' }

  it('writes a class-data archive the first time and uses it from then on', () => {
    const jars = { kind: 'jars' as const, folder: root, jars: ['/a.jar', '/b.jar'], fingerprint: 'f' }
    const first = javaLaunch({ java, jars, clusterId: 'c', mark: '1-2', port: 1, useArchive: true })
    expect(first.args).toContain(`-XX:ArchiveClassesAtExit=${first.archiveWritten}`)
    expect(first.archivePlace).toBe(archivePath(java, jars))
    writeFileSync(first.archivePlace, '')
    const second = javaLaunch({ java, jars, clusterId: 'c', mark: '1-2', port: 1, useArchive: true })
    expect(second.args).toContain(`-XX:SharedArchiveFile=${first.archivePlace}`)
    expect(second.archiveWritten).toBe('')
  })

  it('names the folder where an older version has written it, which named the cluster', () => {
    const jars = { kind: 'jars' as const, folder: root, jars: ['/a.jar'], fingerprint: 'f' }
    const spec = javaLaunch({ java, jars, clusterId: 'c', mark: '1-2', port: 1, useArchive: false })
    const folder = brokerFolder(root)
    createBrokerFolder(folder)
    const asBefore = (argument: string): string => argument.replace('.folder=1-2', '.cluster=c').replace('.fencing=1-2', '.fencing=c')
    writeLaunchSpec(folder, { ...spec, args: spec.args.map(asBefore), fencingArgs: spec.fencingArgs.map(asBefore) })
    expect(readLaunchSpec(folder, '1-2')).toEqual(spec)
  })

  it('keeps the newest three archives', () => {
    const jars = { kind: 'jars' as const, folder: root, jars: ['/a.jar'], fingerprint: 'f' }
    for (const [index, name] of ['classes-1.jsa', 'classes-2.jsa', 'classes-3.jsa', 'other.jsa'].entries()) {
      writeFileSync(join(root, name), '')
      utimesSync(join(root, name), index + 1, index + 1)
    }
    const spec = javaLaunch({ java, jars, clusterId: 'c', mark: '1-2', port: 1, useArchive: true })
    writeFileSync(spec.archiveWritten, '')
    placeArchive(spec)
    const kept = ['classes-2.jsa', 'classes-3.jsa', basename(archivePath(java, jars)), 'other.jsa']
    expect(readdirSync(root).sort()).toEqual(kept.sort())
  })

  it('has another archive for another Java or other jars', () => {
    const jars = { kind: 'jars' as const, folder: root, jars: ['/a.jar'], fingerprint: 'f' }
    const paths = [
      archivePath(java, jars),
      archivePath({ ...java, build: 'openjdk version "21"' }, jars),
      archivePath(java, { ...jars, fingerprint: 'g' }),
    ]
    expect(new Set(paths).size).toBe(3)
  })
})

describe('a command', () => {
  it('that does not exist is missing; one that fails says how', async () => {
    expect(await runCommand('no-such-program-here', [], { timeoutMs: 1000 })).toEqual({ kind: 'missing' })
    expect(await runCommand('sh', ['-c', 'echo out; echo err >&2; exit 3'], { timeoutMs: 5000 })).toMatchObject({ how: 'exit code 3' })
    expect(await runCommand('sleep', ['20'], { timeoutMs: 50 })).toMatchObject({ kind: 'failed', how: 'it was ended by SIGTERM' })
  })

  it('ends when aborted, with the reason', async () => {
    const abort = new AbortController()
    const running = runCommand('sleep', ['20'], { timeoutMs: 20_000, signal: abort.signal })
    const reason = new Error('enough')
    abort.abort(reason)
    await expect(running).rejects.toBe(reason)
  })
})
