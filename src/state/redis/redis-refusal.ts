/** What an error reply of Redis means for whoever asked. `away`: it may be answered later, and nothing is guessed until then. */
export interface Refusal {
  readonly kind: 'away' | 'broken'
  /** What to do about it, behind the server's own words. */
  readonly hint: string
}

const OF_ANOTHER = 'Something else writes under the keys of this deployment: name another database in `redis` (redis://host:6379/1)'
const LACKS = 'The server lacks what Millrace needs of a Redis, or something else writes under the keys of this deployment'
const NO_CLUSTER =
  'It is a Redis Cluster, and Millrace changes several keys in one step, which have no hash tag in common: name a server that is no Redis Cluster in `redis`'
const PERMISSIONS = 'Allow the user of `redis` the commands and keys of this deployment'
const SCRIPT = 'A script holds up the server; `SCRIPT KILL` ends it'

/** By the beginning of the reply, the first that fits. */
const REFUSALS: readonly (readonly [RegExp, Refusal])[] = [
  [/^(NOAUTH|WRONGPASS|ERR AUTH|ERR invalid password)\b/i, away('Check user and password in `redis`')],
  // Rights may be given while we wait. The last two are of scripts.
  [/^(NOPERM|ERR ACL failure|ERR The user executing)\b/, away(PERMISSIONS)],
  [/^DENIED\b/, away('Set a password on the server, or `protected-mode no`')],
  [/^ERR max number of clients/, away('Raise `maxclients` of the server')],
  [/^ERR DB index/, away('Name a database that the server has in `redis`')],
  [/^LOADING\b/, away('It goes on by itself once the server has read its data')],
  // After a failover ioredis connects anew, and the sentinels lead it to the one that leads by then.
  [/^READONLY\b/, away('The server only takes readers: name the one that leads, or its sentinels, in `redis`')],
  [/^MASTERDOWN\b/, away('The server follows one that is away: name the one that leads, or its sentinels, in `redis`')],
  [/^NOREPLICAS\b/, away('Fewer servers follow it than `min-replicas-to-write` says')],
  [/^OOM\b/, away('Raise `maxmemory` of the server; nothing was forgotten')],
  [/^MISCONF\b/, away('The server can not save to its disk: free space there')],
  [/^(BUSY|UNKILLABLE)\b/, away(SCRIPT)],
  [/^(ERR )?.*Script killed by user/, away(SCRIPT)],
  // A connection that lost its thread; the next one begins anew.
  [/^ERR Protocol error/, away('Check `redis` and that the server runs')],
  [/^CLUSTERDOWN\b/, away(NO_CLUSTER)],
  [/^(CROSSSLOT|MOVED|ASK)\b/, broken(NO_CLUSTER)],
  // No time heals these: something else lies under our keys, or the server lacks what the scripts need.
  [/^WRONGTYPE\b/, broken(OF_ANOTHER)],
  [/^ERR\b/, broken(LACKS)],
]

/** Total: what is not known is taken for away. Shape: `reply` is the text of the error. */
export function refusalOf(reply: string): Refusal {
  const text = withinScript(reply)
  return REFUSALS.find(([form]) => form.test(text))?.[1] ?? away('Check `redis` and that the server runs')
}

/** Of a server that leads no longer, as after a failover. */
export function isReadOnly(reply: string): boolean {
  return withinScript(reply).startsWith('READONLY')
}

/** Until Redis 6 what stops a script stands behind `ERR Error running script (call to f_…): @user_script:3: -OOM …`. */
function withinScript(reply: string): string {
  return /^ERR Error running script .*@user_script: ?\d+: -?(?=[A-Z]{3,} )(.*)$/s.exec(reply)?.[1] ?? reply
}

function away(hint: string): Refusal {
  return { kind: 'away', hint }
}

function broken(hint: string): Refusal {
  return { kind: 'broken', hint }
}
