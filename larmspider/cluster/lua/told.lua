-- A worker has dropped pages of its directory that no longer count: their list may go.
-- KEYS: list of outdated pages, totals
-- ARGV: field of the totals with the length of the list, the packed pages
if redis.call('LREM', KEYS[1], 1, ARGV[2]) == 1 and redis.call('HEXISTS', KEYS[2], ARGV[1]) == 1 then
  redis.call('HINCRBY', KEYS[2], ARGV[1], -1)
end
