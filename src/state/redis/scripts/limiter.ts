import { HEALTH_RULES } from './site-health.ts'

/**
 * The limiter in Lua, one script per step. The rules are those of limiter-rules.ts, word for word; the contract suite asks both stores
 * the same questions. Differences are of storage alone: a key's pace is a MessagePack map in one string (doubles stay exact, which
 * cjson's 14 digits would not keep), and Redis forgets it when its last wait is long over. Time is Redis TIME in ms.
 *
 * The clock of the server may be set back. Times that it had told before would then lie ahead by as much, and a site would wait for hours:
 * so each value says when it was written (`sv`), and what was written in the future is moved to now. What was left to wait then is
 * waited for from now on; nothing is shortened. (LMDB counts by a clock that nobody sets.) Set forward, it can't be told from time that has
 * passed: waits end sooner, and leases too.
 *
 * Fields: d debt, at of the debt, r rate per second, b burst, c concurrency, le last end, du delay until, bo back-off until, ba 1 where the
 * site named that, h health (site-health.ts), rs last reset (absent: none), ls leases {id, until, crawl delay, counts, worker, host, pid,
 * start of the process, start}, sv when it was written.
 */
const RULES = `
local IDLE_MS, PARKED_IDLE_MS = 600000, 86400000
local POLL_MS = 250
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000

${HEALTH_RULES}
local function endRequest(pace, at, delay)
  if not pace.le or at > pace.le then pace.le = at end
  if at + delay > pace.du then pace.du = at + delay end
end

local function moveBack(pace, ms)
  pace.at, pace.du, pace.bo = pace.at - ms, pace.du - ms, pace.bo - ms
  if pace.le then pace.le = pace.le - ms end
  pace.h.ou, pace.h.cut = pace.h.ou - ms, pace.h.cut - ms
  if pace.h.fs >= 0 then pace.h.fs = math.max(0, pace.h.fs - ms) end
  if pace.h.ts >= 0 then pace.h.ts = math.max(0, pace.h.ts - ms) end
  for _, lease in ipairs(pace.ls) do
    lease[2] = lease[2] - ms
    if lease[9] then lease[9] = lease[9] - ms end
  end
end

local function load(key)
  local raw = redis.call('GET', key)
  if not raw then return {d = 0, at = 0, r = 1, b = 1, c = 1, du = 0, bo = 0, ba = 0, h = newHealth(), ls = {}} end
  local pace = cmsgpack.unpack(raw)
  pace.h = pace.h or newHealth()
  pace.h.ts = pace.h.ts or -1
  if pace.sv and pace.sv > now then moveBack(pace, pace.sv - now) end
  local alive = {}
  for _, lease in ipairs(pace.ls) do
    if lease[2] > now then alive[#alive + 1] = lease
    elseif lease[4] == 1 then endRequest(pace, lease[2], lease[3]) end
  end
  pace.ls = alive
  return pace
end

local function save(key, pace)
  pace.sv = now
  local last = math.max(pace.bo, pace.h.ou, pace.du, pace.le or 0, pace.at + pace.d / pace.r * 1000)
  for _, lease in ipairs(pace.ls) do last = math.max(last, lease[2] + lease[3]) end
  local idle = IDLE_MS
  if pace.h.t > 0 then idle = PARKED_IDLE_MS end
  redis.call('SET', key, cmsgpack.pack(pace), 'PX', math.ceil(math.max(last - now, 0)) + idle)
end

local function debtAt(pace, rate, at)
  return math.max(0, pace.d - (at - pace.at) * rate / 1000)
end

local function extendBackOff(pace, till, isAsked)
  if till <= pace.bo then return end
  pace.bo, pace.ba = till, isAsked
end

local function hearReset(pace, resetAt)
  if resetAt <= (pace.rs or 0) then return false end
  pace.rs, pace.bo, pace.ba, pace.h = resetAt, 0, 0, newHealth()
  return true
end

local function known(pace)
  local backOff = math.ceil(math.max(0, pace.bo - now))
  local isAsked = 0
  if backOff > 0 and pace.ba == 1 then isAsked = 1 end
  return {backOff, isAsked, string.format('%.17g', pace.h.a), string.format('%.17g', pace.h.f), pace.h.t,
    math.ceil(math.max(0, pace.h.ou - now))}
end

local function rateLeft(pace, rate, burst)
  local over = debtAt(pace, rate, now) + 1 - burst
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
 * process, how far ahead a start is given out, the last reset, then per key rate, burst, concurrency, crawl delay. Answer: {'lease',
 * concurrency in force, ms to the start, birth}, or {'wait', concurrency, ms, birth, reason, number of the key} and behind it, for each
 * lease that stands in the way and belongs to another process of the asker's host: number of the key, leaseId, pid, start.
 *
 * A birth that is missing means that the store was emptied while we were connected: it is born again, and warms up. So is one that lies
 * ahead, since the clock was set back.
 */
export const ACQUIRE = `${RULES}
local birth = redis.call('GET', KEYS[1])
local born = tonumber(birth or '')
if not born or born > now then
  born, birth = now, string.format('%.17g', now)
  redis.call('SET', KEYS[1], birth)
end
local counts, ahead, resetAt = tonumber(ARGV[3]), tonumber(ARGV[8]), tonumber(ARGV[9])
local paces, forces, candidates = {}, {}, {}
local startIn, least = 0, math.huge
local longest, reason, which = 0, nil, nil
for i = 2, #KEYS do
  local base = 10 + (i - 2) * 4
  local pace = load(KEYS[i])
  if hearReset(pace, resetAt) then save(KEYS[i], pace) end
  paces[i] = pace
  local rate, burst, concurrency, delay = inForce(pace.h, tonumber(ARGV[base]), tonumber(ARGV[base + 1]),
    tonumber(ARGV[base + 2]), tonumber(ARGV[base + 3]))
  forces[i] = {rate, burst}
  least = math.min(least, concurrency)
  local wait, why = 0, nil
  local function consider(ms, because)
    if ms > wait then wait, why = ms, because end
  end
  if pace.ba == 1 then consider(pace.bo - now, 'retry-after') else consider(pace.bo - now, 'back-off') end
  consider(pace.h.ou - now, 'breaker')
  if born > 0 then consider(born + math.max(delay, 1000 / rate) - now, 'warm-up') end
  if counts == 1 then
    consider(delayLeft(pace, delay), 'crawl-delay')
    consider(rateLeft(pace, rate, burst), 'rate')
  end
  if wait > 0 and wait <= ahead then
    startIn = math.max(startIn, wait)
    wait = 0
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
  if wait > longest then longest, reason, which = wait, why, i - 1 end
end
if longest > 0 then
  local answer = {'wait', least, math.max(1, math.ceil(longest)), birth, reason, which}
  for _, value in ipairs(candidates) do answer[#answer + 1] = value end
  return answer
end
local start = now + startIn
for i = 2, #KEYS do
  local base = 10 + (i - 2) * 4
  local pace = paces[i]
  local delay = 0
  pace.c = tonumber(ARGV[base + 2])
  if counts == 1 then
    local rate, burst = forces[i][1], forces[i][2]
    delay = tonumber(ARGV[base + 3])
    pace.d, pace.at, pace.r, pace.b = debtAt(pace, rate, start) + 1, start, rate, burst
  end
  pace.ls[#pace.ls + 1] = {ARGV[1], start + tonumber(ARGV[2]), delay, counts, ARGV[4], ARGV[5], ARGV[6], ARGV[7], start}
  save(KEYS[i], pace)
end
return {'lease', least, string.format('%.17g', startIn), birth}
`

/**
 * KEYS: paces. ARGV: leaseId; the report: kind (empty where there is none), failure, latency, back-off, 1 where the site named that, how
 * late the request left; the rules: adaptive, failures, first and longest parking; the last reset; how long ago the request ended; then the
 * crawl delay per key. What is not said is empty. Answer: per key what `known` tells, and what has changed.
 */
export const RELEASE = `${RULES}
local report = {kind = ARGV[2], failure = ARGV[3], latency = tonumber(ARGV[4]), adaptive = tonumber(ARGV[8]),
  failures = tonumber(ARGV[9]), first = tonumber(ARGV[10]), most = tonumber(ARGV[11])}
local backOff, isAsked, sentLate = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
report.backsOff = backOff ~= nil
local resetAt = tonumber(ARGV[12])
local endedAt = now - tonumber(ARGV[13])
local answer = {}
for i = 1, #KEYS do
  local pace = load(KEYS[i])
  hearReset(pace, resetAt)
  local rest, lease = {}, nil
  for _, each in ipairs(pace.ls) do
    if each[1] == ARGV[1] then lease = each else rest[#rest + 1] = each end
  end
  pace.ls = rest
  local counts = not lease or lease[4] == 1
  if counts then endRequest(pace, endedAt, tonumber(ARGV[13 + i]) / pace.h.f) end
  if backOff then extendBackOff(pace, endedAt + backOff, isAsked) end
  local change = 'none'
  if lease and report.kind ~= '' then
    local startedAt = lease[9] or now
    if counts and sentLate then pace.at = math.max(pace.at, startedAt + sentLate) end
    change = learn(pace.h, report, startedAt, pace.c or 1)
  end
  local state = known(pace)
  state[#state + 1] = change
  answer[i] = state
  save(KEYS[i], pace)
end
return answer
`

/** KEYS: paces. ARGV: leaseId, then per key rate, burst, concurrency, crawl delay. Answer: ms to the start that counts from now on. */
export const START_AGAIN = `${RULES}
local paces, leases, forces = {}, {}, {}
local wait = 0
for i = 1, #KEYS do
  local base = 2 + (i - 1) * 4
  local pace, lease = load(KEYS[i]), false
  for _, each in ipairs(pace.ls) do
    if each[1] == ARGV[1] and each[4] == 1 then lease = each end
  end
  local rate, burst, _, delay = inForce(pace.h, tonumber(ARGV[base]), tonumber(ARGV[base + 1]), tonumber(ARGV[base + 2]),
    tonumber(ARGV[base + 3]))
  paces[i], leases[i], forces[i] = pace, lease, {rate, burst}
  if lease then
    local startedAt = lease[9] or now
    if startedAt >= now then wait = math.max(wait, startedAt - now)
    elseif pace.at > startedAt then wait = math.max(wait, rateLeft(pace, rate, burst), delayLeft(pace, delay)) end
  end
end
local start = now + wait
for i = 1, #KEYS do
  local pace, lease = paces[i], leases[i]
  local startedAt = lease and (lease[9] or now)
  if lease and start > startedAt then
    if pace.at > startedAt then
      local rate, burst = forces[i][1], forces[i][2]
      pace.d, pace.at, pace.r, pace.b = debtAt(pace, rate, start) + 1, start, rate, burst
    else pace.at = start end
    lease[2], lease[9] = lease[2] + start - startedAt, start
    save(KEYS[i], pace)
  end
end
return string.format('%.17g', wait)
`

/** KEYS: paces. ARGV: leaseId, how late the request left. */
export const LATE = `${RULES}
for i = 1, #KEYS do
  local pace = load(KEYS[i])
  for _, lease in ipairs(pace.ls) do
    if lease[1] == ARGV[1] and lease[4] == 1 then pace.at = math.max(pace.at, (lease[9] or now) + tonumber(ARGV[2])) end
  end
  save(KEYS[i], pace)
end
return 0
`

/** KEYS: pace. ARGV: the reset. */
export const RESET = `${RULES}
local pace = load(KEYS[1])
hearReset(pace, tonumber(ARGV[1]))
save(KEYS[1], pace)
return 0
`

/** KEYS: pace. ARGV: what `known` tells, in that order; the last reset. */
export const REASSERT = `${RULES}
local pace = load(KEYS[1])
local resetAt = tonumber(ARGV[7])
if resetAt < (pace.rs or 0) then return 0 end
hearReset(pace, resetAt)
local backOff, allowed, factor = tonumber(ARGV[1]), tonumber(ARGV[3]), tonumber(ARGV[4])
local trips, parked = tonumber(ARGV[5]), tonumber(ARGV[6])
if backOff > 0 then extendBackOff(pace, now + backOff, tonumber(ARGV[2])) end
local health = pace.h
if allowed >= 0 then
  if health.a < 0 then health.a = allowed else health.a = math.min(health.a, allowed) end
end
health.f = math.min(health.f, factor)
if trips > health.t then
  health.t = trips
  if health.fs < 0 then health.fs = now end
end
if parked > 0 and now + parked > health.ou then health.ou, health.of = now + parked, parked end
save(KEYS[1], pace)
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
      if lease[4] == 1 then
        endRequest(pace, now, lease[3])
        pace.at = math.max(pace.at, now)
      end
    else rest[#rest + 1] = lease end
  end
  pace.ls = rest
  save(KEYS[i], pace)
end
return ended
`

/**
 * KEYS: pace. Answer: {leases, ms to the next start, slow mean of the latency, ms without an answer, requests at once (-1: as the policy)},
 * then what `known` tells.
 */
export const LIMITER_STATE = `${RULES}
local pace = load(KEYS[1])
local nextMs = math.max(rateLeft(pace, pace.r, pace.b), delayLeft(pace, 0), 0)
local failing = 0
if pace.h.fs >= 0 then failing = math.ceil(now - pace.h.fs) end
local answer = {#pace.ls, math.ceil(nextMs), math.floor(pace.h.bl + 0.5), failing, atOnce(pace.h)}
for _, value in ipairs(known(pace)) do answer[#answer + 1] = value end
return answer
`

/**
 * KEYS: clock. ARGV: local wait, interval. Answer: ms from now. The clock is forgotten once it lies behind. It is kept with the time at
 * which it was written, for a server whose own clock is set back.
 */
export const SPILL_SLOT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local stored, written = string.match(redis.call('GET', KEYS[1]) or '0', '^(%S+) ?(%S*)')
local clock = tonumber(stored) - math.max(0, (tonumber(written) or now) - now)
local slot = math.max(now + tonumber(ARGV[1]), clock) + tonumber(ARGV[2])
local ms = math.max(0, math.ceil(slot - now))
redis.call('SET', KEYS[1], string.format('%.17g %.17g', slot, now), 'PX', ms + 1000)
return ms
`

/** Begins a deployment of which the store holds nothing. KEYS: birth. ARGV: 1 where an empty start calls for a warm-up. */
export const BIRTH = `
local time = redis.call('TIME')
local born = '0'
if ARGV[1] == '1' then born = string.format('%.17g', time[1] * 1000 + time[2] / 1000) end
redis.call('SET', KEYS[1], born, 'NX')
return 0
`
