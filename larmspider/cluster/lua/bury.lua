-- ARGV 7: the epoch of a dead worker whose last commit has been carried out: its blocks are free.
bury(ARGV[7])
redis.call('HDEL', DEAD, ARGV[7])
return {'DONE'}
