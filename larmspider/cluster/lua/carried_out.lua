-- The commit has been carried out in all blocks: its redo may go, unless there is a newer one.
-- KEYS: commit record, commits
-- ARGV: serial
if redis.call('HGET', KEYS[1], 'serial') == ARGV[1] then
  local redo = redis.call('HGET', KEYS[1], 'redo')
  redis.call('HDEL', KEYS[1], 'redo')
  if redo and redo ~= '' then
    redis.call('INCR', KEYS[2])
  end
end
return 'DONE'
