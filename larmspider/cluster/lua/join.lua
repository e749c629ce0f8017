-- ARGV 7: the description of the crawl; 8: the one before, which may be replaced by it, or ''.
local mine, others, living = nil, false, 0
for who, worker in pairs(all_workers()) do
  if who == name then
    mine = worker
  else
    others = true
    if worker[2] >= now then
      living = living + 1
    end
  end
end
if mine and mine[2] >= now then
  return {'TAKEN', mine[1], whole(mine[2] - now)}
end
local known = redis.call('GET', DESCRIPTION)
if known and known ~= ARGV[7] and (living > 0 or known ~= ARGV[8]) then
  return {'OTHER', known, living}
end
redis.call('SET', DESCRIPTION, ARGV[7])
if mine then
  die(name, mine[1])
end
note_pulse(others)
local new = next_token()
redis.call('HSET', WORKERS, name, new .. ' ' .. whole(now + lease))
if redis.call('DEL', ENDED) == 1 then
  redis.call('HSET', TOTALS, 'ended', '1')
end
touch()
if living == 0 then
  redis.call('HSET', PULSE, 'begun', new)
end
return {'JOINED', new, living, mine and mine[1] or ''}
