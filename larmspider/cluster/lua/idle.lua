-- This worker has no work and everything committed. Its next commit, or block, takes that back.
-- ARGV 7: how many blocks it has taken up. Where it was given more, it does not know of them yet.
-- ARGV 8: what it knows of its commits.
-- ARGV 9: the version of all that its last beat told it, which may save counting, or ''.
if fenced() then
  return {'FENCED', 'its lease ran out'}
end
if forgotten(ARGV[8]) or unapplied() then
  return {'FENCED', 'Redis has come back without its last commit'}
end
if ARGV[9] == '' or ARGV[9] ~= version() then
  local owned = 0
  for _, owner in pairs(all_blocks()) do
    if owner[1] == epoch then
      owned = owned + 1
    end
  end
  if owned ~= tonumber(ARGV[7]) then
    return {'REST', '', has_ended() and 1 or 0}
  end
end
redis.call('HSET', IDLE, name, '1')
return {'REST', at_rest(), has_ended() and 1 or 0}
