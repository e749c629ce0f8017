-- The commit has been applied in all partitions: its log may go, unless there is a newer one.
-- KEYS: commit record, commits
-- ARGV: serial, id ('' where it has none)
local serial, id, steps, applied =
  unpack(redis.call('HMGET', KEYS[1], 'serial', 'id', 'steps', 'applied'))
if serial ~= ARGV[1] or (id or '') ~= ARGV[2] then
  return tonumber(serial or '0') > tonumber(ARGV[1]) and 'DONE' or 'FORGOTTEN'
end
if redis.call('HSTRLEN', KEYS[1], 'redo') > 0 then
  if steps and steps ~= '' and tonumber(applied) < tonumber(steps) then
    return 'UNAPPLIED'
  end
  redis.call('HDEL', KEYS[1], 'redo')
  redis.call('INCR', KEYS[2])
end
return 'DONE'
