-- The commit itself: from here on the batch is durable, and whoever comes by can carry it out.
-- KEYS: commit record, workers, commits, idle, totals
-- ARGV: worker, epoch, serial, pages stored, 1 if blocks change by it (else only the worker's own
--       positions do, which is no sign of work), then fields and values of the record
local epoch = (redis.call('HGET', KEYS[2], ARGV[1]) or ''):match('^(%d+) ')
if epoch ~= ARGV[2] then
  return 'FENCED'
end
local serial = redis.call('HGET', KEYS[1], 'serial') or '0'
if serial == ARGV[3] then
  return 'AGAIN' -- the answer was lost, not the commit
end
if tonumber(serial) ~= tonumber(ARGV[3]) - 1 then
  return 'AT ' .. serial
end
redis.call('HSET', KEYS[1], 'serial', ARGV[3], unpack(ARGV, 6))
if ARGV[5] == '1' then
  redis.call('INCR', KEYS[3])
  redis.call('HDEL', KEYS[4], ARGV[1])
end
if ARGV[4] ~= '0' then
  redis.call('HINCRBY', KEYS[5], 'stored', ARGV[4])
end
return 'DONE'
