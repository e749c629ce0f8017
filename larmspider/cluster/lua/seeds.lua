-- Take seeds out, whose commit is in Redis: after it has gone back to before, they are read again.
-- KEYS: seeds; where it lies on the same node, the commit record of the worker
-- ARGV: serial of the commit, LREM, SREM or ZREM, then values
if KEYS[2] and tonumber(redis.call('HGET', KEYS[2], 'serial') or '0') < tonumber(ARGV[1]) then
  return 'FORGOTTEN'
end
for at = 3, #ARGV do
  if ARGV[2] == 'LREM' then
    redis.call('LREM', KEYS[1], 1, ARGV[at])
  else
    redis.call(ARGV[2], KEYS[1], ARGV[at])
  end
end
return 'DONE'
