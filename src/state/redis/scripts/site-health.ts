/**
 * What the answers of a site say about its pace, in Lua: the rules are those of site-health.ts, word for word. Within a script that
 * defines `now`.
 *
 * Fields of a health: a allowed (-1: as the policy), f rate factor, bl slow mean, rc quick mean, n samples, cut last cut, st strain, t
 * trips, ou open until, of open for, fs failing since (-1: it answers), ts tried since (-1: it is not).
 */
export const HEALTH_RULES = `
local WEIGHTS = {connect = 1, timeout = 1, server = 0.25}
local LEAST_RATE, RATE_STEP = 1 / 16, 1 / 16
local SAMPLES_BEFORE_CUT, SLOW_SAMPLES, QUICK_SAMPLES = 16, 256, 8
local MOST_OF_MEAN, DOUBLED, LEAST_RISE_MS = 4, 1.75, 50

local function newHealth()
  return {a = -1, f = 1, bl = 0, rc = 0, n = 0, cut = 0, st = 0, t = 0, ou = 0, of = 0, fs = -1, ts = -1}
end

local function atOnce(health)
  if health.t > 0 or health.ts >= 0 then return 1 end
  if health.a < 0 then return -1 end
  return math.max(1, math.floor(health.a + 1e-9))
end

local function inForce(health, rate, burst, concurrency, delay)
  local allowed = concurrency
  local most = atOnce(health)
  if most >= 0 then allowed = math.min(allowed, most) end
  allowed = math.max(1, math.floor(allowed + 1e-9))
  if health.f < 1 then burst = 1 end
  return rate * health.f, burst, allowed, delay / health.f
end

local function closeBreaker(health)
  local wasOpen = health.t > 0
  health.st, health.t, health.ou, health.of, health.fs = 0, 0, 0, 0, -1
  if wasOpen then return 'closed' end
  return 'none'
end

local function strain(health, failure, startedAt, rules)
  if rules.failures == 0 then return 'none' end
  if health.fs < 0 then health.fs = now end
  if now < health.ou or startedAt < health.ou then return 'none' end
  if health.t == 0 then
    health.st = health.st + WEIGHTS[failure] / rules.failures
    if health.st < 1 - 1e-9 then return 'none' end
  end
  health.t = health.t + 1
  health.st = 0
  health.of = math.min(rules.most, rules.first * 2 ^ math.min(30, health.t - 1))
  health.ou = now + health.of
  return 'opened'
end

local function cutPace(health, startedAt, concurrency, alsoRate)
  if startedAt < health.cut then return 'none' end
  local present = concurrency
  if health.a >= 0 then present = math.min(present, health.a) end
  if present > 1 then health.a = math.max(1, present / 2)
  elseif alsoRate and health.f > LEAST_RATE then
    health.a = 1
    health.f = math.max(LEAST_RATE, health.f / 2)
  else return 'none' end
  health.cut = now
  return 'slowed'
end

local function raise(health, concurrency)
  if health.f < 1 then health.f = math.min(1, health.f + RATE_STEP)
  elseif health.a >= 0 then
    health.a = health.a + 1 / health.a
    if health.a >= concurrency then health.a = -1 end
  end
end

local function isSlow(health, latency)
  if not latency then return false end
  health.n = math.min(SAMPLES_BEFORE_CUT + 1, health.n + 1)
  local weight = health.n
  if health.n > SAMPLES_BEFORE_CUT then weight = SLOW_SAMPLES end
  local ms = latency
  if health.n > 1 then ms = math.min(latency, MOST_OF_MEAN * math.max(1, health.bl)) end
  health.bl = health.bl + (ms - health.bl) / weight
  health.rc = health.rc + (ms - health.rc) / math.min(QUICK_SAMPLES, health.n)
  if health.n <= SAMPLES_BEFORE_CUT then return false end
  if health.rc <= DOUBLED * health.bl or health.rc - health.bl < LEAST_RISE_MS then return false end
  health.rc = health.bl
  return true
end

local function learn(health, report, startedAt, concurrency)
  if report.kind == 'none' then return 'none' end
  if report.kind == 'overload' and report.backsOff then health.ts = now
  elseif report.kind == 'success' and startedAt >= health.ts then health.ts = -1 end
  local broke
  if report.failure == '' then broke = closeBreaker(health) else broke = strain(health, report.failure, startedAt, report) end
  if report.adaptive ~= 1 then health.a, health.f = -1, 1 end
  if broke ~= 'none' or report.adaptive ~= 1 then return broke end
  if report.kind == 'overload' then return cutPace(health, startedAt, concurrency, true) end
  if report.kind ~= 'success' then return 'none' end
  if isSlow(health, report.latency) then return cutPace(health, startedAt, concurrency, false) end
  if not report.latency or report.latency <= 2 * health.bl then raise(health, concurrency) end
  return 'none'
end
`
