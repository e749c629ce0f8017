-- ARGV 7: the blocks that this worker gives up, as "block:token block:token ...".
local owners = all_blocks()
for block, token in ARGV[7]:gmatch('(%d+):(%d+)') do
  local owner = owners[block]
  if owner and owner[1] == epoch and owner[2] == token then
    redis.call('HDEL', BLOCKS, block)
    local who, weight = (redis.call('HGET', MOVES, block) or ''):match('^(%S+) (%d+)')
    if who == name then
      redis.call('HDEL', MOVES, block)
    elseif who then
      redis.call('HSET', MOVES, block, who .. ' ' .. weight .. ' ') -- it counts here no more
    end
  end
end
touch()
return {'DONE'}
