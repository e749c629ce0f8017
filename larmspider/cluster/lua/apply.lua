-- One step of a commit in one block, once: the changes of its owner, or mail from another worker.
-- KEYS: owner record, then those that the commands name by number
-- ARGV: token ('' for mail), field of the owner record that counts steps, number of this step,
--       commands as msgpack: {{'HSET', 2, field, value, ...}, ...}
if ARGV[1] ~= '' and redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then
  return 'FENCED'
end
local done = redis.call('HGET', KEYS[1], ARGV[2]) or '0'
if tonumber(done) >= tonumber(ARGV[3]) then
  return 'AGAIN'
end
redis.call('HSET', KEYS[1], ARGV[2], done) -- out of memory: it fails here, before any change
for _, command in ipairs(cmsgpack.unpack(ARGV[4])) do
  redis.call(command[1], KEYS[command[2]], unpack(command, 3))
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
return 'DONE'
