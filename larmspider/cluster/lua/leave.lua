-- Everything is committed: partitions and name are free. ARGV 7: what this worker knows of its
-- commits, or '' where it broke off.
if fenced() then
  return {'FENCED', 'its lease ran out'}
end
if unapplied() then
  die(name, epoch) -- Redis has come back without that: somebody else applies it
else
  bury(epoch)
  redis.call('HDEL', WORKERS, name)
  redis.call('HDEL', IDLE, name)
  redis.call('HDEL', LOAD, name)
end
if ARGV[7] ~= '' and forgotten(ARGV[7]) then
  return {'FORGOTTEN'}
end
return {'DONE'}
