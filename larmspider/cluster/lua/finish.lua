-- ARGV 7: the number of commits at which all were at rest and no block had mail.
if at_rest() ~= ARGV[7] then
  return {'REST', ''}
end
redis.call('SET', ENDED, ARGV[7])
redis.call('HSET', TOTALS, 'ended', '1')
redis.call('DEL', REFRESH)
return {'REST', ARGV[7]}
