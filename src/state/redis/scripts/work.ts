/** Scripts of the seen set, the crawls, the budgets and the workers, one step each. Items come in lists; an answer has one value per item. */

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

/** KEYS: notes. ARGV: ms to live. */
export const MARK_FINISHED = `
for i = 1, #KEYS do redis.call('SET', KEYS[i], '', 'PX', math.max(1, math.ceil(tonumber(ARGV[1])))) end
return 0
`

/** KEYS: open set, final set, index of crawls. ARGV: crawlId, then taskIds. */
export const ACCEPT = `
redis.call('SADD', KEYS[3], ARGV[1])
for i = 2, #ARGV do
  if redis.call('SISMEMBER', KEYS[2], ARGV[i]) == 0 then redis.call('SADD', KEYS[1], ARGV[i]) end
end
return 0
`

/** KEYS: open set, final set, index of crawls. ARGV: crawlId, then taskIds. Final tasks are all accepted, so each lies in one set alone. */
export const FINALISE = `
redis.call('SADD', KEYS[3], ARGV[1])
for i = 2, #ARGV do
  redis.call('SADD', KEYS[2], ARGV[i])
  redis.call('SREM', KEYS[1], ARGV[i])
end
return 0
`

/** KEYS: open set, final set. Answer: {open, final}. */
export const CRAWL_COUNTS = `
return {redis.call('SCARD', KEYS[1]), redis.call('SCARD', KEYS[2])}
`

/** KEYS: index of crawls. ARGV: prefix of open sets. Answer: crawlId and number of open tasks of each crawl that has some. */
export const OPEN_CRAWLS = `
local answer = {}
for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
  local open = redis.call('SCARD', ARGV[1] .. id)
  if open > 0 then
    answer[#answer + 1] = id
    answer[#answer + 1] = open
  end
end
return answer
`

/**
 * KEYS: claims, open set, final set, index of crawls, index of the crawl's budgets. ARGV: crawlId, prefix of budget sets, how many budgets
 * to drop at most. Answer: 1 when nothing is left.
 */
export const FORGET_CRAWL = `
for _, budget in ipairs(redis.call('SPOP', KEYS[5], ARGV[3])) do redis.call('UNLINK', ARGV[2] .. budget) end
if redis.call('EXISTS', KEYS[5]) == 1 then return 0 end
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])
redis.call('SREM', KEYS[4], ARGV[1])
return 1
`

/**
 * KEYS: per budget its set and the index of its crawl ('' where it names none). ARGV: taskId, then per budget limit and id. Answer: number
 * of the first budget that is full, 0 where all gave a place.
 */
export const RESERVE = `
local task = ARGV[1]
for i = 1, #KEYS / 2 do
  local set = KEYS[i * 2 - 1]
  if redis.call('SISMEMBER', set, task) == 0 and redis.call('SCARD', set) >= tonumber(ARGV[i * 2]) then return i end
end
for i = 1, #KEYS / 2 do
  redis.call('SADD', KEYS[i * 2 - 1], task)
  if KEYS[i * 2] ~= '' then redis.call('SADD', KEYS[i * 2], ARGV[i * 2 + 1]) end
end
return 0
`

/** KEYS: sets. ARGV: taskId. */
export const UNRESERVE = `
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
