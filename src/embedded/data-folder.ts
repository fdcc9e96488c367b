import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { countText } from '../kernel/count-text.ts'
import { MillraceError } from '../kernel/errors.ts'
import { temporaryBeside, writeFileAtomic } from './atomic-file.ts'
import type { BrokerFolder } from './broker-folder.ts'
import { isId, newKafkaId } from './broker-folder.ts'
import { parseProperties } from './server-properties.ts'

/** Who the log folder belongs to; Kafka keeps the same in `meta.properties`. */
export interface LogIdentity {
  readonly clusterId: string
  readonly directoryId: string
}

export interface PreparedLog {
  readonly identity: LogIdentity
  /** What was put right, for people; empty when nothing was. */
  readonly repairs: readonly string[]
}

const META = 'meta.properties'

/** Where Kafka's format tool puts the first snapshot of the metadata log, under the log folder. */
export const BOOTSTRAP_SNAPSHOT = '__cluster_metadata-0/00000000000000000000-0000000000.checkpoint'

/**
 * Makes the log folder ready for the broker: formats a new one under its own cluster id, puts a half-formatted one right, and leaves
 * one with data as it is.
 *
 * Shape: `known` is what was noted about the folder before, `snapshot` the template. The log's own `meta.properties` wins over `known`.
 * Errors: DATA_DIR_BROKEN when there is data and nothing says whose it is.
 */
export function prepareLog(folder: BrokerFolder, known: LogIdentity | undefined, snapshot: Uint8Array): PreparedLog {
  if (!existsSync(folder.data)) {
    const lost = known !== undefined && existsSync(folder.properties)
    // An emptied folder is a new cluster: positions and ids of the old one must not match it.
    return { identity: format(folder, snapshot), repairs: lost ? ['the log folder was gone: a new one was formatted'] : [] }
  }
  const meta = readMeta(folder)
  const partitions = partitionFolders(folder)
  if (meta !== undefined) {
    const repairs: string[] = []
    if (known !== undefined && known.clusterId !== meta.clusterId)
      repairs.push('the noted cluster id was not that of the log: took the one of the log')
    if (restoreSnapshot(folder, snapshot)) repairs.push('the log was half formatted: added the missing snapshot')
    return { identity: meta, repairs }
  }
  if (partitions.length === 0) {
    rmSync(folder.data, { recursive: true, force: true })
    return { identity: format(folder, snapshot), repairs: ['the log was half formatted and empty: formatted it anew'] }
  }
  if (known === undefined) {
    throw new MillraceError(
      'DATA_DIR_BROKEN',
      `${join(folder.data, META)} is missing or unreadable, and so is ${folder.cluster}: nothing says which cluster the ${countText(partitions.length, 'partition')} in ${folder.data} ${partitions.length === 1 ? 'belongs' : 'belong'} to. ` +
        `Restore one of the two files, or move ${folder.path} away and start anew`,
      { context: { folder: folder.path } },
    )
  }
  writeMeta(folder.data, known)
  restoreSnapshot(folder, snapshot)
  return { identity: known, repairs: [`${META} was missing or unreadable: wrote it again`] }
}

function format(folder: BrokerFolder, snapshot: Uint8Array): LogIdentity {
  const identity: LogIdentity = { clusterId: newKafkaId(), directoryId: newKafkaId() }
  const temporary = temporaryBeside(folder.data)
  mkdirSync(dirname(join(temporary, BOOTSTRAP_SNAPSHOT)), { recursive: true })
  writeFileAtomic(join(temporary, BOOTSTRAP_SNAPSHOT), snapshot)
  writeMeta(temporary, identity)
  renameSync(temporary, folder.data)
  return identity
}

function writeMeta(folder: string, identity: LogIdentity): void {
  const lines = ['version=1', 'node.id=1', `cluster.id=${identity.clusterId}`, `directory.id=${identity.directoryId}`, '']
  writeFileAtomic(join(folder, META), lines.join('\n'))
}

function readMeta(folder: BrokerFolder): LogIdentity | undefined {
  const path = join(folder.data, META)
  if (!existsSync(path)) return undefined
  const properties = parseProperties(readFileSync(path, 'utf8'))
  const clusterId = properties['cluster.id']
  const directoryId = properties['directory.id']
  if (properties['node.id'] !== '1' || !isId(clusterId) || !isId(directoryId)) return undefined
  return { clusterId, directoryId }
}

/** The snapshot is read only while the metadata log is empty; a folder whose log has begun does without. True when it was added. */
function restoreSnapshot(folder: BrokerFolder, snapshot: Uint8Array): boolean {
  const metadata = dirname(join(folder.data, BOOTSTRAP_SNAPSHOT))
  if (existsSync(metadata) && readdirSync(metadata).some((name) => name.endsWith('.log') || name.endsWith('.checkpoint'))) return false
  mkdirSync(metadata, { recursive: true })
  writeFileAtomic(join(folder.data, BOOTSTRAP_SNAPSHOT), snapshot)
  return true
}

/** Folders that hold messages, or the metadata log once it has begun. */
function partitionFolders(folder: BrokerFolder): string[] {
  return readdirSync(folder.data, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && /-\d+$/.test(entry.name))
    .filter(
      (entry) => entry.name !== '__cluster_metadata-0' || readdirSync(join(folder.data, entry.name)).some((name) => name.endsWith('.log')),
    )
    .map((entry) => entry.name)
}
