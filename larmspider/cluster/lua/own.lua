-- A partition gets a new owner; from now on the tokens of earlier ones are worth nothing. Not while
-- the last commit of the owner before is not applied here.
-- KEYS: owner record; where they lie on the same node, commit records: of the new owner, and of the
--       one before, or of the new one where there is none
-- ARGV: token, worker, worker before as the caller knows it, number of the partition
local token, before = unpack(redis.call('HMGET', KEYS[1], 'token', 'worker'))
if tonumber(token or '0') > tonumber(ARGV[1]) then
  return 'FENCED'
end
if KEYS[2] then
  if (before or '') ~= ARGV[3] then
    return 'UNAPPLIED'
  end
  local changed = redis.call('HGET', KEYS[3], 'partitions') or (' ' .. ARGV[4] .. ' ')
  local changes = changed:find(' ' .. ARGV[4] .. ' ', 1, true)
  if changes and redis.call('HSTRLEN', KEYS[3], 'redo') > 0 then
    return 'UNAPPLIED'
  end
  if token ~= ARGV[1] or before ~= ARGV[2] then
    redis.call('HINCRBY', KEYS[2], 'taken', 1)
  end
end
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'worker', ARGV[2])
return 'DONE'
