/** Adds to a counter in a file under the lock, so that a lock that lets two in loses additions: `lock-contender <folder> <times>`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { waitForLock } from '../../src/embedded/file-lock.ts'
import { systemClock } from '../../src/kernel/clock.ts'

const [, , folder, times] = process.argv
if (folder === undefined) throw new Error('usage: lock-contender FOLDER TIMES')
const counter = join(folder, 'counter')
// No waiting between tries: the more of them collide, the better.
const clock = { ...systemClock, sleep: () => new Promise<void>((resolve) => setImmediate(resolve)) }
for (let round = 0; round < Number(times); round++) {
  const lock = await waitForLock({ folder, name: 'x.lock', what: 'contender', waitMs: 60_000, clock })
  const value = Number(readFileSync(counter, 'utf8'))
  await new Promise((resolve) => setImmediate(resolve))
  writeFileSync(counter, String(value + 1))
  lock.release()
}
