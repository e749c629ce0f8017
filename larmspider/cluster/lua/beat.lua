-- ARGV 7: the blocks that this worker holds, as "block:token block:token ...".
if fenced() then
  return {'FENCED', 'its lease ran out'}
end
local workers = all_workers()
local others = next(workers, next(workers)) ~= nil
local until_quiet, until_unsure = note_pulse(others)
local quiet, unsure = now < until_quiet, now < until_unsure
redis.call('HSET', WORKERS, name, epoch .. ' ' .. whole(now + lease))

local living, silent = {}, {}
for who, worker in pairs(workers) do
  if who ~= name and worker[2] < now and not quiet then
    die(who, worker[1])
  else
    table.insert(living, who)
    if who ~= name and worker[2] - now < lease / 2 then
      table.insert(silent, who)
      table.insert(silent, math.ceil(math.max(worker[2], until_quiet) - now))
    end
  end
end

local claims = {}
for block, token in ARGV[7]:gmatch('(%d+):(%d+)') do
  claims[block] = token
end
local owners, held, free, given = all_blocks(), 0, {}, {}
for number = 0, total - 1 do
  local block = whole(number)
  local owner, claim = owners[block], claims[block]
  if claim then
    if not owner or tonumber(owner[2]) < tonumber(claim) then
      redis.call('HSET', BLOCKS, block, epoch .. ' ' .. claim) -- Redis had forgotten it
    elseif owner[1] ~= epoch or owner[2] ~= claim then
      return {'FENCED', 'block ' .. block .. ' has another owner'}
    end
    held = held + 1
  elseif owner and owner[1] == epoch then
    if unsure then
      redis.call('HDEL', BLOCKS, block) -- Redis had forgotten that it was given up
    else
      table.insert(given, {block, owner[2]}) -- the answer that said so was lost
    end
  elseif not owner then
    table.insert(free, block)
  end
end

table.sort(living)
local share = math.floor(total / #living)
for at, who in ipairs(living) do
  if who == name and at <= total % #living then
    share = share + 1
  end
end
if not unsure then
  for _, block in ipairs(free) do
    if held + #given >= share then
      break
    end
    local token = next_token()
    redis.call('HSET', BLOCKS, block, epoch .. ' ' .. token)
    table.insert(given, {block, token})
  end
end
local begun, assigned = redis.call('HGET', PULSE, 'begun') or '', {}
for _, pair in ipairs(given) do
  redis.call('HDEL', IDLE, name)
  local run = redis.call('HGET', RUNS, pair[1])
  redis.call('HSET', RUNS, pair[1], begun)
  table.insert(assigned, {pair[1], pair[2], run == begun and 0 or 1})
end

return {
  'HELD',
  #living,
  quiet and 1 or 0,
  assigned,
  math.max(0, held + #given - share),
  redis.call('HGETALL', DEAD),
  has_ended() and 1 or 0,
  silent,
}
