-- A block gets a new owner; from now on the tokens of earlier ones are worth nothing.
-- KEYS: owner record
-- ARGV: token, worker
local token = redis.call('HGET', KEYS[1], 'token') or '0'
if tonumber(token) > tonumber(ARGV[1]) then
  return 'FENCED'
end
redis.call('HSET', KEYS[1], 'token', ARGV[1], 'worker', ARGV[2])
return 'DONE'
