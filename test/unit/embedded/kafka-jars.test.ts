import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { installPackages } from '../../../src/embedded/debian-packages.ts'
import { cachedJars, type KafkaJars, resolveJars } from '../../../src/embedded/kafka-jars.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { RecordingObserver } from '../../support/embedded.ts'

let root: string
let cacheDir: string
let observer: RecordingObserver
const path = process.env.PATH

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'millrace-jars-'))
  cacheDir = join(root, 'cache')
  mkdirSync(join(root, 'bin'))
  observer = new RecordingObserver()
  process.env.PATH = `${join(root, 'bin')}:${path}`
})
afterEach(() => {
  process.env.PATH = path
  rmSync(root, { recursive: true, force: true })
})

function program(name: string, script: string): void {
  writeFileSync(join(root, 'bin', name), `#!/bin/sh\necho "$@" >> ${root}/${name}.calls\n${script}\n`)
  chmodSync(join(root, 'bin', name), 0o755)
}

const calls = (name: string) =>
  existsSync(`${root}/${name}.calls`) ? readFileSync(`${root}/${name}.calls`, 'utf8').trim().split('\n') : []
const downloads = () => calls('mvn').filter((call) => call.includes('copy-dependencies')).length

/** Maven, as far as it matters here: puts two jars into the folder it is told. */
function maven(): void {
  program(
    'mvn',
    `for a in "$@"; do case $a in -DoutputDirectory=*) d="\${a#*=}"; mkdir -p "$d"; echo jar-b > "$d/b.jar"; echo jar-a > "$d/a.jar";; esac; done`,
  )
}

const resolve = () => resolveJars({ cacheDir, clock: systemClock, observer })

async function resolved(): Promise<KafkaJars> {
  const jars = await resolve()
  if (jars.kind === 'none') throw new Error(jars.reason)
  return jars
}

describe('the jars of Kafka', () => {
  it('are fetched through Maven once, saying so first, and come from the cache from then on', async () => {
    maven()
    const first = await resolved()
    expect(first.jars.map((jar) => basename(jar))).toEqual(['a.jar', 'b.jar'])
    expect(observer.names()).toEqual(['DependencyInstalling'])
    expect(await resolve()).toEqual(first)
    expect(cachedJars(cacheDir)).toEqual(first)
    expect([downloads(), observer.names().length]).toEqual([1, 1])
    utimesSync(first.jars[0]!, 1, 1)
    expect(cachedJars(cacheDir)?.fingerprint).not.toBe(first.fingerprint)
    expect(readdirSync(cacheDir)).toEqual([basename(first.folder)])
  })

  it.each([
    ['a jar is cut short', (folder: string) => truncateSync(join(folder, 'lib', 'a.jar'), 2)],
    ['a jar is missing', (folder: string) => rmSync(join(folder, 'lib', 'b.jar'))],
    ['the marker is missing', (folder: string) => rmSync(join(folder, 'complete.json'))],
    ['the marker is broken', (folder: string) => writeFileSync(join(folder, 'complete.json'), '{')],
  ])('are fetched again when %s', async (_, damage) => {
    maven()
    const { folder } = await resolved()
    damage(folder)
    expect(cachedJars(cacheDir)).toBeUndefined()
    const again = await resolved()
    expect(readFileSync(join(again.folder, 'lib', 'a.jar'), 'utf8')).toBe('jar-a\n')
    expect([downloads(), readdirSync(cacheDir)]).toEqual([2, [basename(folder)]])
  })

  it('are whole for both when two fetch them at once', async () => {
    maven()
    const [one, other] = await Promise.all([resolved(), resolved()])
    expect(one.jars).toEqual(other.jars)
    expect(readdirSync(cacheDir)).toEqual([basename(one.folder)])
  })

  it('are missing with the reason of Maven, and leave nothing behind', async () => {
    program('mvn', `case "$*" in *copy-dependencies*) echo "Could not transfer artifact kafka"; exit 1;; esac`)
    expect(await resolve()).toMatchObject({
      kind: 'none',
      reason: expect.stringMatching(/exit code 1.*Could not transfer artifact kafka/s),
    })
    expect(readdirSync(cacheDir)).toEqual([])
  })

  it('are missing where there is no Maven', async () => {
    process.env.PATH = join(root, 'bin')
    expect(await resolve()).toMatchObject({ kind: 'none', reason: expect.stringContaining('there is no mvn on the PATH') })
  })

  it('sweep what a killed process left half fetched a day ago, and nothing younger', async () => {
    maven()
    mkdirSync(join(cacheDir, '.kafka-old.1-aa.tmp'), { recursive: true })
    mkdirSync(join(cacheDir, '.kafka-new.2-bb.tmp'))
    utimesSync(join(cacheDir, '.kafka-old.1-aa.tmp'), 1, 1)
    const { folder } = await resolved()
    expect(readdirSync(cacheDir).sort()).toEqual(['.kafka-new.2-bb.tmp', basename(folder)])
  })
})

describe('packages of the distribution', () => {
  it('are installed after saying so', async () => {
    program('apt-get', '')
    expect(await installPackages(['maven'], observer)).toEqual({ kind: 'installed' })
    expect(observer.events).toEqual([{ name: 'DependencyInstalling', fields: { what: 'maven', by: 'apt-get install' } }])
    expect(calls('apt-get')).toHaveLength(1)
  })

  it('are looked for in fresh lists when the old ones do not know them', async () => {
    program('apt-get', `case "$*" in update) touch ${root}/fresh;; *) test -e ${root}/fresh;; esac`)
    expect(await installPackages(['maven'], observer)).toEqual({ kind: 'installed' })
    expect(calls('apt-get')).toHaveLength(3)
  })

  it('that can not be had are a reason', async () => {
    program('apt-get', `echo "E: Unable to locate package $3"; exit 100`)
    expect(await installPackages(['maven'], observer)).toMatchObject({
      kind: 'failed',
      reason: expect.stringContaining('Unable to locate'),
    })
  })
})
