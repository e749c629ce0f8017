-- ARGV 7: the number of commits at which all were at rest and no block had mail.
if at_rest() ~= ARGV[7] then
  return {'REST', ''}
end
redis.call('SET', ENDED, ARGV[7])
return {'REST', ARGV[7]}
