-- The commit has been applied in all partitions: its log may go, unless there is a newer one.
-- KEYS: commit record, commits, mail
-- ARGV: serial, id ('' where it has none), then the partitions whose inboxes the log has filled
local serial, id, steps, applied =
  unpack(redis.call('HMGET', KEYS[1], 'serial', 'id', 'steps', 'applied'))
if serial ~= ARGV[1] or (id or '') ~= ARGV[2] then
  return tonumber(serial or '0') > tonumber(ARGV[1]) and 'DONE' or 'FORGOTTEN'
end
if redis.call('HSTRLEN', KEYS[1], 'redo') > 0 then
  if steps and steps ~= '' and tonumber(applied) < tonumber(steps) then
    return 'UNAPPLIED'
  end
  -- Out of memory: it fails here, before any change. The number is larger than every one before,
  -- also where Redis has come back without its last second: by the time, in microseconds.
  if #ARGV > 2 then
    local last = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2] or '0'
    local time = redis.call('TIME')
    local number = string.format('%.0f', math.max(last + 1, time[1] * 1000000 + time[2]))
    for at = 3, #ARGV do
      redis.call('ZADD', KEYS[3], number, ARGV[at])
    end
  end
  redis.call('HDEL', KEYS[1], 'redo')
  redis.call('INCR', KEYS[2])
end
return 'DONE'
