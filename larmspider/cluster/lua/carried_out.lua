-- The commit has been applied in all partitions: its log may go, unless there is a newer one.
-- KEYS: commit record, commits, mail, totals, lists of outdated pages of other workers
-- ARGV: serial, id ('' where it has none), the packed pages for each of these lists, then the
--       partitions whose inboxes the log has filled

-- A number larger than every one before, also where Redis has come back without its last second: by
-- the time, in microseconds.
local function next_number(last)
  local time = redis.call('TIME')
  return string.format('%.0f', math.max((last or '0') + 1, time[1] * 1000000 + time[2]))
end

local serial, id, steps, applied =
  unpack(redis.call('HMGET', KEYS[1], 'serial', 'id', 'steps', 'applied'))
if serial ~= ARGV[1] or (id or '') ~= ARGV[2] then
  return tonumber(serial or '0') > tonumber(ARGV[1]) and 'DONE' or 'FORGOTTEN'
end
if redis.call('HSTRLEN', KEYS[1], 'redo') > 0 then
  if steps and steps ~= '' and tonumber(applied) < tonumber(steps) then
    return 'UNAPPLIED'
  end
  -- out of memory: it fails here, before any change
  local first = #KEYS - 1
  for at = 5, #KEYS do
    -- the totals count the lists of each worker, so that a lost key is missed (lost_parts.py)
    local size = KEYS[at]:match('{crawl}:(outdated:.+)$')
    local length = redis.call('RPUSH', KEYS[at], ARGV[at - 2])
    if redis.call('HEXISTS', KEYS[4], size) == 1 then
      redis.call('HINCRBY', KEYS[4], size, 1)
    else
      redis.call('HSET', KEYS[4], size, length)
    end
  end
  if #ARGV >= first then
    local number = next_number(redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2])
    for at = first, #ARGV do
      redis.call('ZADD', KEYS[3], number, ARGV[at])
    end
  end
  redis.call('HDEL', KEYS[1], 'redo')
  redis.call('SET', KEYS[2], next_number(redis.call('GET', KEYS[2])))
end
return 'DONE'
