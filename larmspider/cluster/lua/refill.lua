-- How many visits again the budget of the whole crawl has left: those are added that have come since
-- the last call, and those taken off that commits have counted since.
-- KEYS: totals
-- ARGV: seconds since the epoch, visits a day, for how many days they are kept
local now, per_day = tonumber(ARGV[1]), tonumber(ARGV[2])
local found = redis.call('HMGET', KEYS[1], 'visits', 'left', 'at', 'counted')
local visits = tonumber(found[1] or '0')
local left = per_day
if found[3] then
  local passed = math.max(0, now - tonumber(found[3]))
  left = math.max(0, tonumber(found[2]) - (visits - tonumber(found[4]))) + passed / 86400 * per_day
end
left = math.min(left, tonumber(ARGV[3]) * per_day)
redis.call('HSET', KEYS[1], 'left', string.format('%.6f', left), 'at', ARGV[1], 'counted', visits)
return string.format('%.6f', left)
