import { describe, expect, it } from 'vitest'
import { isReadOnly, refusalOf } from '../../../src/state/redis/redis-refusal.ts'

/** As servers say it, of versions and kinds that the tests do not start. */
const AWAY = [
  ['LOADING Redis is loading the dataset in memory', 'goes on by itself'],
  [
    "ERR Error running script (call to f_2bab): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.",
    'maxmemory',
  ],
  ["ERR Error running script (call to f_2bab): @user_script:7: -READONLY You can't write against a read only replica.", 'sentinels'],
  ["ERR Error running script (call to f_2bab): @user_script:7: -NOPERM The user executing the script can't run this command", 'Allow'],
  ['ERR Error running script (call to f_2bab): @enable_strict_lua:8: Script killed by user with SCRIPT KILL...', 'SCRIPT KILL'],
  ["ERR ACL failure in script: User w has no permissions to run the 'set' command script: 22, on @user_script:3.", 'Allow'],
  ['UNKILLABLE Sorry the script already executed write commands against the dataset.', 'SCRIPT KILL'],
  ['CLUSTERDOWN Hash slot not served', 'no Redis Cluster'],
  ['ERR max number of clients + cluster connections reached', 'maxclients'],
  ['ERR Protocol error: invalid bulk length', 'Check `redis`'],
  ['WRONGPASS invalid username-password pair or user is disabled.', 'password'],
  ['DENIED Redis is running in protected mode because protected mode is enabled', 'protected-mode'],
  ['no upstream host', 'Check `redis`'],
  ['TRYAGAIN Multiple keys request during rehashing of slot', 'Check `redis`'],
  ['', 'Check `redis`'],
] as const

const BROKEN = [
  [
    'ERR Error running script (call to f_2bab): @user_script:9: WRONGTYPE Operation against a key holding the wrong kind of value',
    'another database',
  ],
  ['CROSSSLOT Keys in request do not hash to the same slot', 'no hash tag in common'],
  ['WRONGTYPE Operation against a key holding the wrong kind of value', 'another database in `redis`'],
  ['ERR user_script:33: bad argument #1 to unpack script: 2263, on @user_script:33.', 'something else'],
  ["ERR unknown command 'evalsha', with args beginning with:", 'something else'],
  ['MOVED 3999 127.0.0.1:6381', 'no Redis Cluster'],
] as const

describe('refusals of Redis', () => {
  it.each(AWAY)('may pass: %s', (reply, hint) => {
    expect(refusalOf(reply)).toMatchObject({ kind: 'away', hint: expect.stringContaining(hint) })
  })

  it.each([
    "READONLY You can't write against a read only replica.",
    "ERR Error running script (call to f_2bab): @user_script:7: -READONLY You can't write against a read only replica.",
    "ERR Error running script (call to f_2bab): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.",
  ])('of a server that leads no longer are known, in a script of an old one too: %s', (reply) => {
    expect(isReadOnly(reply)).toBe(true)
    expect(isReadOnly('ERR of a key named READONLY')).toBe(false)
  })

  it.each(BROKEN)('no time heals: %s', (reply, hint) => {
    expect(refusalOf(reply)).toMatchObject({ kind: 'broken', hint: expect.stringContaining(hint) })
  })
})
