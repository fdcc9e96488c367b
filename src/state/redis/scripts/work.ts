/**
 * Scripts of the seen set, the crawls, the budgets and the workers, one step each. Items come in lists; an answer has one value per item.
 */

/** Per claim KEYS: hash of the crawl, own key of a timed claim. ARGV: field, claimant, ms to live or ''. Answer: 0 new, 1 own, 2 known. */
export const CLAIM = `
local verdicts = {}
for i = 1, #KEYS / 2 do
  local hash, timed = KEYS[i * 2 - 1], KEYS[i * 2]
  local field, claimant, ttl = ARGV[i * 3 - 2], ARGV[i * 3 - 1], ARGV[i * 3]
  local holder = redis.call('HGET', hash, field) or redis.call('GET', timed)
  if holder then
    if holder == claimant then verdicts[i] = 1 else verdicts[i] = 2 end
  else
    if ttl == '' then redis.call('HSET', hash, field, claimant)
    else redis.call('SET', timed, claimant, 'PX', math.max(1, math.ceil(tonumber(ttl)))) end
    verdicts[i] = 0
  end
end
return verdicts
`

/** KEYS, ARGV and answer as for a claim; claims nothing. */
export const LOOK_UP_CLAIMS = `
local verdicts = {}
for i = 1, #KEYS / 2 do
  local holder = redis.call('HGET', KEYS[i * 2 - 1], ARGV[i * 3 - 2]) or redis.call('GET', KEYS[i * 2])
  if not holder then verdicts[i] = 0 elseif holder == ARGV[i * 3 - 1] then verdicts[i] = 1 else verdicts[i] = 2 end
end
return verdicts
`

/** KEYS: notes. ARGV: ms to live. */
export const MARK_FINISHED = `
for i = 1, #KEYS do redis.call('SET', KEYS[i], '', 'PX', math.max(1, math.ceil(tonumber(ARGV[1])))) end
return 0
`

const NOW = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
`

/** A crawl is in the index of those that are open, or among those that have ended, by when something was last heard of them. */
const KEEP_INDEX = `${NOW}
if redis.call('SCARD', KEYS[1]) > 0 then
  redis.call('SADD', KEYS[3], ARGV[1])
  redis.call('ZREM', KEYS[4], ARGV[1])
else
  redis.call('SREM', KEYS[3], ARGV[1])
  redis.call('ZADD', KEYS[4], string.format('%.17g', now), ARGV[1])
end
`

/**
 * KEYS: open set, final set, index of open crawls, ended crawls by time. ARGV: crawlId, then taskIds. Answer: per task 1 where it is final.
 */
export const ACCEPT = `
local answer = {}
for i = 2, #ARGV do
  answer[i - 1] = redis.call('SISMEMBER', KEYS[2], ARGV[i])
  if answer[i - 1] == 0 then redis.call('SADD', KEYS[1], ARGV[i]) end
end
${KEEP_INDEX}
return answer
`

/** The same KEYS and ARGV. Final tasks are all accepted, so each lies in one set alone. */
export const FINALISE = `
for i = 2, #ARGV do
  redis.call('SADD', KEYS[2], ARGV[i])
  redis.call('SREM', KEYS[1], ARGV[i])
end
${KEEP_INDEX}
return 0
`

/**
 * The same KEYS. ARGV: crawlId, numbers of open and of final tasks, how many to drop at most. Answer: how many open tasks were dropped;
 * none where the numbers are others.
 */
export const DROP_OPEN = `
if redis.call('SCARD', KEYS[1]) ~= tonumber(ARGV[2]) or redis.call('SCARD', KEYS[2]) ~= tonumber(ARGV[3]) then return 0 end
local dropped = #redis.call('SPOP', KEYS[1], ARGV[4])
if dropped == 0 then return 0 end
${KEEP_INDEX}
return dropped
`

/** KEYS: two sets. Answer: the size of each. */
export const SIZES_OF = `
return {redis.call('SCARD', KEYS[1]), redis.call('SCARD', KEYS[2])}
`

/**
 * KEYS: index of open crawls. ARGV: prefix of open sets, how many others at most, then crawlIds. Answer: number of open crawls, how many of
 * those asked for are open, then crawlId and number of open tasks of each of these and of the others.
 */
export const OPEN_CRAWLS = `
local answer, named = {redis.call('SCARD', KEYS[1]), 0}, {}
for i = 3, #ARGV do
  local open = redis.call('SCARD', ARGV[1] .. ARGV[i])
  named[ARGV[i]] = true
  if open > 0 then
    answer[2] = answer[2] + 1
    answer[#answer + 1] = ARGV[i]
    answer[#answer + 1] = open
  end
end
for _, id in ipairs(redis.call('SRANDMEMBER', KEYS[1], ARGV[2])) do
  if not named[id] then
    answer[#answer + 1] = id
    answer[#answer + 1] = redis.call('SCARD', ARGV[1] .. id)
  end
end
return answer
`

/** KEYS: ended crawls by time. ARGV: ms since then, how many at most. Answer: crawlIds, the one that ended first before the others. */
export const ENDED_CRAWLS = `${NOW}
local before = string.format('%.17g', now - tonumber(ARGV[1]))
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', before, 'LIMIT', 0, ARGV[2])
`

/**
 * KEYS: ended crawls by time, claims, final set, index of the crawl's budgets. ARGV: crawlId, ms since its end, prefixes of budget sets and
 * of held sets, how many budgets to drop at most. Answer: 'gone', 'more' where something is left, 'kept' where it has not ended so long ago
 * (any more).
 */
export const FORGET_CRAWL = `${NOW}
local endedAt = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or '')
if not endedAt or endedAt > now - tonumber(ARGV[2]) then return 'kept' end
for _, budget in ipairs(redis.call('SPOP', KEYS[4], ARGV[5])) do redis.call('UNLINK', ARGV[3] .. budget, ARGV[4] .. budget) end
if redis.call('EXISTS', KEYS[4]) == 1 then return 'more' end
redis.call('UNLINK', KEYS[2], KEYS[3])
redis.call('ZREM', KEYS[1], ARGV[1])
return 'gone'
`

/**
 * KEYS: per budget its set, those of them that are held, and the index of its crawl ('' where it names none). ARGV: taskId, ms that holds
 * last, then per budget limit and id. Answer: number of a budget that is full for good; negative: of the first whose places are held; 0
 * where all gave a place.
 */
export const RESERVE = `
local task, answer = ARGV[1], 0
for i = 1, #KEYS / 3 do
  local set, limit = KEYS[i * 3 - 2], tonumber(ARGV[i * 2 + 1])
  if redis.call('SISMEMBER', set, task) == 0 and redis.call('SCARD', set) >= limit then
    if redis.call('SCARD', set) - redis.call('SCARD', KEYS[i * 3 - 1]) >= limit then return i end
    if answer == 0 then answer = -i end
  end
end
if answer ~= 0 then return answer end
for i = 1, #KEYS / 3 do
  local set, held, index = KEYS[i * 3 - 2], KEYS[i * 3 - 1], KEYS[i * 3]
  if redis.call('SADD', set, task) == 1 then redis.call('SADD', held, task) end
  redis.call('PEXPIRE', held, math.max(1, math.ceil(tonumber(ARGV[2]))))
  if index ~= '' then redis.call('SADD', index, ARGV[i * 2 + 2]) end
end
return 0
`

/** KEYS: sets of tasks. ARGV: taskId. */
export const REMOVE_FROM_SETS = `
for i = 1, #KEYS do redis.call('SREM', KEYS[i], ARGV[1]) end
return 0
`

/** KEYS: heartbeat, index. ARGV: workerId, JSON, ms to live. */
export const HEARTBEAT = `
redis.call('SET', KEYS[1], ARGV[2], 'PX', math.max(1, math.ceil(tonumber(ARGV[3]))))
redis.call('SADD', KEYS[2], ARGV[1])
return 0
`

/** KEYS: heartbeat, index. ARGV: workerId. */
export const REMOVE_WORKER = `
redis.call('DEL', KEYS[1])
redis.call('SREM', KEYS[2], ARGV[1])
return 0
`

/** KEYS: index. ARGV: prefix of heartbeats. Answer: JSON of each live worker; those that fell silent leave the index. */
export const WORKERS = `
local live = {}
for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local json = redis.call('GET', ARGV[1] .. id)
  if json then live[#live + 1] = json else redis.call('SREM', KEYS[1], id) end
end
return live
`
