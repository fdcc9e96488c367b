import { existsSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Whether nothing of this data folder's deployment can have asked a site before: it has neither a broker nor state yet. To be asked
 * before either is opened. Shape: false where only the state is gone, since then nobody knows any more who was asked when.
 */
export function isNewDeployment(dataDir: string): boolean {
  return !existsSync(join(dataDir, 'kafka')) && !existsSync(join(dataDir, 'state'))
}
