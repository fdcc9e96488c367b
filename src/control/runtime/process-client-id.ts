import { createHash } from 'node:crypto'
import { hostIdentity, isGone, processStartedAt } from '../../machine/process-identity.ts'

const MARK = /#(\d+)#([0-9a-f]{12})#([0-9a-f]{12})$/

/** Client id that names this process: pid, host and start behind what people chose. */
export function processClientId(clientId: string): string {
  return `${clientId}#${process.pid}#${digest(hostIdentity())}#${digest(processStartedAt(process.pid) ?? '')}`
}

/** True for a client id of a process of this host that has ended; false for one that says nothing of a process. */
export function isClientGone(clientId: string): boolean {
  const [, pid, host, start] = MARK.exec(clientId) ?? []
  if (pid === undefined || host !== digest(hostIdentity())) return false
  const started = processStartedAt(Number(pid))
  // Without a start it has ended, or the system hides it.
  return started === undefined ? isGone({ pid: Number(pid), pidStartedAt: '' }) : digest(started) !== start
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12)
}
