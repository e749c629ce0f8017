-- The commit itself: from here on the batch is durable, and whoever comes by can apply it.
-- KEYS: commit record, workers, commits, idle, totals
-- ARGV: worker, epoch, serial, id, number of times that the worker took a partition (''
--       where that is not counted), pages stored, 1 if partitions change by it (else only the
--       worker's own positions do, which is no sign of work), visits again that the budget pays,
--       then fields and values of the record

-- A number larger than every one before, also where Redis has come back without its last second: by
-- the time, in microseconds.
local function next_number(last)
  local time = redis.call('TIME')
  return string.format('%.0f', math.max((last or '0') + 1, time[1] * 1000000 + time[2]))
end

local epoch = (redis.call('HGET', KEYS[2], ARGV[1]) or ''):match('^(%d+) ')
if epoch ~= ARGV[2] then
  return 'FENCED'
end
local serial, id, taken = unpack(redis.call('HMGET', KEYS[1], 'serial', 'id', 'taken'))
serial = serial or '0'
if serial == ARGV[3] and id == ARGV[4] then
  return 'AGAIN' -- the answer was lost, not the commit
end
if tonumber(serial) ~= tonumber(ARGV[3]) - 1 then
  return 'AT ' .. serial
end
if ARGV[5] ~= '' and (taken or '0') ~= ARGV[5] then
  return 'TAKEN'
end
if redis.call('HSTRLEN', KEYS[1], 'redo') > 0 then
  return 'UNAPPLIED' -- Redis has forgotten that the commit before was applied
end
redis.call('HSET', KEYS[1], 'serial', ARGV[3], 'id', ARGV[4], 'applied', '0', unpack(ARGV, 9))
if ARGV[7] == '1' then
  redis.call('SET', KEYS[3], next_number(redis.call('GET', KEYS[3])))
  redis.call('HDEL', KEYS[4], ARGV[1])
end
if ARGV[6] ~= '0' then
  redis.call('HINCRBY', KEYS[5], 'stored', ARGV[6])
end
if ARGV[8] ~= '0' then
  redis.call('HINCRBY', KEYS[5], 'visits', ARGV[8])
end
return 'DONE'
