import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type BrokerFolder,
  boundLog,
  brokerFolder,
  createBrokerFolder,
  isId,
  lastLines,
  newKafkaId,
  readClusterFile,
  readProcessFile,
  rotateLog,
  writeClusterFile,
} from '../../../src/embedded/broker-folder.ts'
import { BOOTSTRAP_SNAPSHOT, prepareLog } from '../../../src/embedded/data-folder.ts'

let root: string
let folder: BrokerFolder
const snapshot = Buffer.from('snapshot')
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'millrace-data-'))
  folder = brokerFolder(root)
  createBrokerFolder(folder)
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const meta = () => join(folder.data, 'meta.properties')
const addPartition = () => {
  mkdirSync(join(folder.data, 'scrape.urls-0'))
  writeFileSync(join(folder.data, '__cluster_metadata-0', '00000000000000000000.log'), 'x')
}

describe('the log folder', () => {
  it('is formatted under ids of its own: two folders never share a cluster id', () => {
    const first = prepareLog(folder, undefined, snapshot)
    expect(first.repairs).toEqual([])
    expect(readFileSync(join(folder.data, BOOTSTRAP_SNAPSHOT))).toEqual(snapshot)
    expect(readFileSync(meta(), 'utf8')).toBe(
      `version=1\nnode.id=1\ncluster.id=${first.identity.clusterId}\ndirectory.id=${first.identity.directoryId}\n`,
    )
    const other = brokerFolder(join(root, 'other'))
    createBrokerFolder(other)
    expect(prepareLog(other, undefined, snapshot).identity.clusterId).not.toBe(first.identity.clusterId)
  })

  it('with data is left as it is', () => {
    const { identity } = prepareLog(folder, undefined, snapshot)
    addPartition()
    rmSync(join(folder.data, BOOTSTRAP_SNAPSHOT))
    expect(prepareLog(folder, identity, Buffer.from('other'))).toEqual({ identity, repairs: [] })
    expect(existsSync(join(folder.data, BOOTSTRAP_SNAPSHOT))).toBe(false)
  })

  it('wins over a note that names another cluster', () => {
    const { identity } = prepareLog(folder, undefined, snapshot)
    const noted = { clusterId: newKafkaId(), directoryId: newKafkaId() }
    const prepared = prepareLog(folder, noted, snapshot)
    expect(prepared.identity).toEqual(identity)
    expect(prepared.repairs).toEqual(['the noted cluster id was not that of the log: took the one of the log'])
  })

  it.each([
    ['nothing', () => undefined],
    ['an empty meta.properties', () => writeFileSync(meta(), '')],
    ['an empty metadata folder', () => mkdirSync(join(folder.data, '__cluster_metadata-0'))],
  ])('that was half formatted and holds %s is formatted anew', (_, prepare) => {
    mkdirSync(folder.data)
    prepare()
    const prepared = prepareLog(folder, undefined, snapshot)
    expect(prepared.repairs).toEqual(['the log was half formatted and empty: formatted it anew'])
    expect(existsSync(join(folder.data, BOOTSTRAP_SNAPSHOT))).toBe(true)
  })

  it('whose format ended before the snapshot gets it', () => {
    const { identity } = prepareLog(folder, undefined, snapshot)
    rmSync(join(folder.data, '__cluster_metadata-0'), { recursive: true })
    expect(prepareLog(folder, undefined, snapshot)).toEqual({
      identity,
      repairs: ['the log was half formatted: added the missing snapshot'],
    })
    expect(readFileSync(join(folder.data, BOOTSTRAP_SNAPSHOT))).toEqual(snapshot)
  })

  it('with data and a damaged meta.properties gets it back from the note, both ids', () => {
    const { identity } = prepareLog(folder, undefined, snapshot)
    addPartition()
    const before = readFileSync(meta(), 'utf8')
    writeFileSync(meta(), '\0\0\0')
    expect(prepareLog(folder, identity, snapshot).identity).toEqual(identity)
    expect(readFileSync(meta(), 'utf8')).toBe(before)
  })

  it('with data that nothing identifies is explained, not touched', () => {
    prepareLog(folder, undefined, snapshot)
    addPartition()
    rmSync(meta())
    expect(() => prepareLog(folder, undefined, snapshot)).toThrow(/nothing says which cluster the 2 partitions .* belong to/)
    expect(existsSync(join(folder.data, 'scrape.urls-0'))).toBe(true)
  })
})

describe('the state files', () => {
  const cluster = { clusterId: newKafkaId(), directoryId: newKafkaId(), port: 24_001, controllerPort: 24_002, via: 'java' as const }

  it('come back as they were written', () => {
    writeClusterFile(folder, cluster)
    expect(readClusterFile(folder)).toEqual(cluster)
  })

  it.each(['', '{', 'null', '[]', '3', JSON.stringify({ ...cluster, port: 70_000 }), JSON.stringify({ ...cluster, clusterId: 'x' })])(
    'that hold %j are broken, not believed',
    (text) => {
      writeFileSync(folder.cluster, text)
      writeFileSync(folder.process, text)
      expect(readClusterFile(folder)).toBe('broken')
      expect(readProcessFile(folder)).toBe('broken')
    },
  )

  it('that are missing are undefined', () => {
    expect([readClusterFile(folder), readProcessFile(folder)]).toEqual([undefined, undefined])
  })

  it('hold ids that Kafka takes', () => {
    for (let round = 0; round < 200; round++) {
      const id = newKafkaId()
      expect(isId(id) && !id.startsWith('-')).toBe(true)
    }
  })
})

describe('the broker log', () => {
  it('shows its last lines without the frames of stacks, and none when there is no file', () => {
    writeFileSync(
      folder.log,
      `${Array.from({ length: 5000 }, (_, n) => `line ${n}`).join('\n')}\n\tat kafka.Kafka.main(Kafka.scala)\nlast\n\n`,
    )
    expect(lastLines(folder.log, 2)).toEqual(['line 4999', 'last'])
    expect(lastLines(join(root, 'none'), 2)).toEqual([])
  })

  it('is moved aside at a start and emptied when it has grown too long', () => {
    rotateLog(folder.log)
    writeFileSync(folder.log, 'first')
    rotateLog(folder.log)
    expect(readFileSync(`${folder.log}.1`, 'utf8')).toBe('first')
    writeFileSync(folder.log, 'x'.repeat(100))
    boundLog(folder.log, 100)
    expect(readFileSync(folder.log, 'utf8')).toHaveLength(100)
    boundLog(folder.log, 99)
    expect(readFileSync(folder.log, 'utf8')).toBe('')
    expect(readFileSync(`${folder.log}.1`, 'utf8')).toHaveLength(100)
  })
})
