-- This worker has no work and everything committed. Its next commit, or block, takes that back.
if fenced() then
  return {'FENCED', 'its lease ran out'}
end
redis.call('HSET', IDLE, name, '1')
return {'REST', at_rest()}
