-- Everything is committed: blocks and name are free.
if fenced() then
  return {'FENCED', 'its lease ran out'}
end
bury(epoch)
redis.call('HDEL', WORKERS, name)
redis.call('HDEL', IDLE, name)
return {'DONE'}
