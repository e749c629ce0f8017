-- One step of a commit in one partition, once: the changes of its owner, or messages from another
-- worker. Not where Redis has come back without the commit.
-- KEYS: owner record, those that the commands name by number; last the commit record, if ARGV 6 is
--       not ''
-- ARGV: token ('' for messages), field of the owner record that counts steps, number of this step,
--       commands as msgpack: {{'HSET', 2, field, value, ...}, ...}, serial and id of the commit
local record = ARGV[6] ~= '' and KEYS[#KEYS]
if record then
  local serial, id = unpack(redis.call('HMGET', record, 'serial', 'id'))
  if id ~= ARGV[6] then
    -- a later commit is there only where this one was applied
    return tonumber(serial or '0') > tonumber(ARGV[5]) and 'AGAIN' or 'FORGOTTEN'
  end
end
if ARGV[1] ~= '' and redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then
  return 'FENCED'
end
local done = redis.call('HGET', KEYS[1], ARGV[2]) or '0'
if tonumber(done) >= tonumber(ARGV[3]) then
  return 'AGAIN'
end
redis.call('HSET', KEYS[1], ARGV[2], done) -- out of memory: it fails here, before any change
local answer = 'DONE'
-- Take the first messages out of an inbox, if they are those that were read: number, SHA-1 of all.
local function trim(inbox, number, digest)
  local first = redis.call('LRANGE', inbox, 0, number - 1)
  if #first == number and redis.sha1hex(table.concat(first)) == digest then
    redis.call('LTRIM', inbox, number, -1)
  else
    answer = 'OTHERS' -- the inbox has gone back: what it has is to be read again
  end
end
-- The owner record counts the records of these tables, so that a key that is gone is missed by the
-- next owner (lost_parts.py).
local lengths = {hosts = 'HLEN', notes = 'HLEN', visits = 'HLEN', merged = 'HLEN', pages = 'LLEN',
                 inbox = 'LLEN'}
local counted = {}
for at = 2, record and #KEYS - 1 or #KEYS do
  local name = KEYS[at]:match(':(%a+):{%d+}$')
  if lengths[name] then
    counted[name] = {at, redis.call(lengths[name], KEYS[at])}
  end
end
for _, command in ipairs(cmsgpack.unpack(ARGV[4])) do
  if command[1] == 'TRIM' then
    trim(KEYS[command[2]], tonumber(command[3]), command[4])
  else
    redis.call(command[1], KEYS[command[2]], unpack(command, 3))
  end
end
for name, before in pairs(counted) do
  local size, now = 'size:' .. name, redis.call(lengths[name], KEYS[before[1]])
  if redis.call('HEXISTS', KEYS[1], size) == 1 then
    redis.call('HINCRBY', KEYS[1], size, now - before[2])
  else -- a crawl that was begun without these counts
    redis.call('HSET', KEYS[1], size, now)
  end
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3])
if record then
  redis.call('HINCRBY', record, 'applied', 1)
end
return answer
