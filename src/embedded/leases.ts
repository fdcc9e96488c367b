import { randomBytes } from 'node:crypto'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { folderMark, isOfFolder } from '../machine/folder-mark.ts'
import { isAlive, isLocal, ownIdentity, type ProcessIdentity, parseIdentity } from '../machine/process-identity.ts'
import { readJsonFile, writeJsonFile } from './atomic-file.ts'
import type { BrokerFolder } from './broker-folder.ts'

/** A user of the broker: as long as its process lives and its lease lies in the folder, the broker stays. */
export interface Lease {
  readonly process: ProcessIdentity
  /** The command that holds it, for people. */
  readonly owner: string
}

/** Adds a lease of this process. Shape: the function takes it away again, once or more often. */
export function addLease(folder: BrokerFolder, owner: string): () => void {
  const path = join(folder.leases, `${process.pid}-${randomBytes(4).toString('hex')}.json`)
  const lease: Lease = { process: ownIdentity(), owner }
  writeJsonFile(path, { folder: folderMark(folder.path), ...lease })
  return () => rmSync(path, { force: true })
}

/**
 * Leases whose processes live; those of dead ones, and files that are no lease, are swept. A missing folder holds none. A lease that was
 * copied along with its folder is none, for its process uses the broker of the other one; nor is one of another host: the broker listens
 * on this host's loopback alone, so it can only be left over from a container that had the folder before.
 */
export function liveLeases(folder: BrokerFolder): Lease[] {
  const live: Lease[] = []
  for (const name of entries(folder.leases)) {
    if (!name.endsWith('.json')) continue
    const path = join(folder.leases, name)
    const file = readJsonFile(path)
    if (file.kind === 'missing') continue
    const lease = file.kind === 'value' ? parseLease(folder, file.value) : undefined
    if (lease !== undefined && isLocal(lease.process) && isAlive(lease.process)) live.push(lease)
    else rmSync(path, { force: true })
  }
  return live
}

function parseLease(folder: BrokerFolder, value: unknown): Lease | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { folder: mark, process: identity, owner } = value as Record<string, unknown>
  const parsed = parseIdentity(identity)
  if (parsed === undefined || !isOfFolder(folder.path, mark)) return undefined
  return { process: parsed, owner: typeof owner === 'string' ? owner : 'another command' }
}

function entries(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
