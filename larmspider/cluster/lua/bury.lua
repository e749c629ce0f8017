-- ARGV 7: the epoch of a dead worker whose last commit has been applied: its partitions are free.
if unapplied() then
  return {'UNAPPLIED'} -- Redis has forgotten that
end
bury(ARGV[7])
redis.call('HDEL', DEAD, ARGV[7])
return {'DONE'}
