/**
 * The limiter in Lua, one script per step. The rules are those of limiter-rules.ts, word for word; the contract suite asks both stores
 * the same questions. Differences are of storage alone: a key's pace is a MessagePack map in one string (doubles stay exact, which
 * cjson's 14 digits would not keep), and Redis forgets it when its last wait is long over. Time is Redis TIME in ms.
 *
 * Fields: d debt, at of the debt, r rate per second, b burst, le last end, du delay until, bo back-off until, ls leases
 * {id, until, crawl delay, counts, worker, host, pid, start of the process}.
 */
const RULES = `
local IDLE_MS = 600000
local POLL_MS = 250
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000

local function endRequest(pace, at, delay)
  if not pace.le or at > pace.le then pace.le = at end
  if at + delay > pace.du then pace.du = at + delay end
end

local function load(key)
  local raw = redis.call('GET', key)
  if not raw then return {d = 0, at = 0, r = 1, b = 1, du = 0, bo = 0, ls = {}} end
  local pace = cmsgpack.unpack(raw)
  local alive = {}
  for _, lease in ipairs(pace.ls) do
    if lease[2] > now then alive[#alive + 1] = lease
    elseif lease[4] == 1 then endRequest(pace, lease[2], lease[3]) end
  end
  pace.ls = alive
  return pace
end

local function save(key, pace)
  local last = math.max(pace.bo, pace.du, pace.le or 0, pace.at + pace.d / pace.r * 1000)
  for _, lease in ipairs(pace.ls) do last = math.max(last, lease[2] + lease[3]) end
  redis.call('SET', key, cmsgpack.pack(pace), 'PX', math.ceil(math.max(last - now, 0)) + IDLE_MS)
end

local function debtNow(pace, rate)
  return math.max(0, pace.d - (now - pace.at) * rate / 1000)
end

local function rateLeft(pace, rate, burst)
  local over = debtNow(pace, rate) + 1 - burst
  if over <= 1e-9 then return 0 end
  return over / rate * 1000
end

local function delayLeft(pace, delay)
  local since = 0
  if pace.le then since = pace.le + delay end
  return math.max(since, pace.du) - now
end
`

/**
 * KEYS: birth of the store, then one pace per key. ARGV: leaseId, leaseMs, counts for the rate (1 or 0), workerId, host, pid, start of the
 * process, then per key rate, burst, concurrency, crawl delay. Answer: {'lease'}, or {'wait', ms, reason, number of the key} and behind
 * it, for each lease that stands in the way and belongs to another process of the asker's host: number of the key, leaseId, pid, start.
 *
 * A birth that is missing means that the store was emptied while we were connected: it is born again, and warms up.
 */
export const ACQUIRE = `${RULES}
local born = tonumber(redis.call('GET', KEYS[1]) or '')
if not born then
  born = now
  redis.call('SET', KEYS[1], string.format('%.17g', now))
end
local counts = tonumber(ARGV[3])
local paces, candidates = {}, {}
local longest, reason, which = 0, nil, nil
for i = 2, #KEYS do
  local base = 8 + (i - 2) * 4
  local rate, burst = tonumber(ARGV[base]), tonumber(ARGV[base + 1])
  local concurrency, delay = tonumber(ARGV[base + 2]), tonumber(ARGV[base + 3])
  local pace = load(KEYS[i])
  paces[i] = pace
  local function consider(ms, because)
    if ms > longest then longest, reason, which = ms, because, i - 1 end
  end
  consider(pace.bo - now, 'back-off')
  if born > 0 then consider(born + math.max(delay, 1000 / rate) - now, 'warm-up') end
  if counts == 1 then
    consider(delayLeft(pace, delay), 'crawl-delay')
    consider(rateLeft(pace, rate, burst), 'rate')
  end
  if #pace.ls >= concurrency then
    local soonest = math.huge
    for _, lease in ipairs(pace.ls) do
      soonest = math.min(soonest, lease[2])
      if lease[6] == ARGV[5] and (lease[7] ~= ARGV[6] or lease[8] ~= ARGV[7]) then
        for _, value in ipairs({i - 1, lease[1], lease[7], lease[8]}) do candidates[#candidates + 1] = value end
      end
    end
    consider(math.max(1, math.min(soonest - now, POLL_MS)), 'concurrency')
  end
end
if longest > 0 then
  local answer = {'wait', math.max(1, math.ceil(longest)), reason, which}
  for _, value in ipairs(candidates) do answer[#answer + 1] = value end
  return answer
end
for i = 2, #KEYS do
  local base = 8 + (i - 2) * 4
  local pace = paces[i]
  local delay = 0
  if counts == 1 then
    local rate = tonumber(ARGV[base])
    delay = tonumber(ARGV[base + 3])
    pace.d, pace.at, pace.r, pace.b = debtNow(pace, rate) + 1, now, rate, tonumber(ARGV[base + 1])
  end
  pace.ls[#pace.ls + 1] = {ARGV[1], now + tonumber(ARGV[2]), delay, counts, ARGV[4], ARGV[5], ARGV[6], ARGV[7]}
  save(KEYS[i], pace)
end
return {'lease'}
`

/** KEYS: paces. ARGV: leaseId, then the crawl delay per key. */
export const RELEASE = `${RULES}
for i = 1, #KEYS do
  local pace = load(KEYS[i])
  local rest, counts = {}, 1
  for _, lease in ipairs(pace.ls) do
    if lease[1] == ARGV[1] then counts = lease[4] else rest[#rest + 1] = lease end
  end
  pace.ls = rest
  if counts == 1 then endRequest(pace, now, tonumber(ARGV[i + 1])) end
  save(KEYS[i], pace)
end
return 0
`

/** Ends leases of processes that are gone. KEYS: paces. ARGV: one leaseId per key. Answer: how many were ended. */
export const END_GONE = `${RULES}
local ended = 0
for i = 1, #KEYS do
  local pace = load(KEYS[i])
  local rest = {}
  for _, lease in ipairs(pace.ls) do
    if lease[1] == ARGV[i] then
      ended = ended + 1
      if lease[4] == 1 then endRequest(pace, now, lease[3]) end
    else rest[#rest + 1] = lease end
  end
  pace.ls = rest
  save(KEYS[i], pace)
end
return ended
`

/** KEYS: pace. ARGV: ms. */
export const BACK_OFF = `${RULES}
local pace = load(KEYS[1])
pace.bo = math.max(pace.bo, now + tonumber(ARGV[1]))
save(KEYS[1], pace)
return 0
`

/** KEYS: pace. Answer: {leases, ms to the next start, ms of back-off left}. */
export const LIMITER_STATE = `${RULES}
local pace = load(KEYS[1])
local nextMs = math.max(rateLeft(pace, pace.r, pace.b), delayLeft(pace, 0), 0)
return {#pace.ls, math.ceil(nextMs), math.ceil(math.max(0, pace.bo - now))}
`

/** KEYS: clock. ARGV: local wait, interval. Answer: ms from now. The clock is forgotten once it lies behind. */
export const SPILL_SLOT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local clock = tonumber(redis.call('GET', KEYS[1]) or '0')
local slot = math.max(now + tonumber(ARGV[1]), clock) + tonumber(ARGV[2])
local ms = math.max(0, math.ceil(slot - now))
redis.call('SET', KEYS[1], string.format('%.17g', slot), 'PX', ms + 1000)
return ms
`

/** KEYS: birth. ARGV: 1 where an empty start calls for a warm-up. Answer: 1 when the store held nothing of this deployment. */
export const BIRTH = `
local time = redis.call('TIME')
local born = '0'
if ARGV[1] == '1' then born = string.format('%.17g', time[1] * 1000 + time[2] / 1000) end
if redis.call('SET', KEYS[1], born, 'NX') then return 1 end
return 0
`
