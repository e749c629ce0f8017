-- ARGV 7: the version up to which this worker knows who owns what, or ''; 8: the blocks that it
-- holds, as "block:token block:token ...", or '-' where it does not tell, as nothing may have changed.
-- 9: how many hosts it has that keep it busy; 10: blocks of such hosts that may move, and how many
-- hosts each has, "block:hosts ..."; 11: blocks that were moved to it and whose hosts count in 9.
if fenced() then
  return {'FENCED', 'its lease ran out'}
end
local workers = all_workers()
local others = next(workers, next(workers)) ~= nil
local until_quiet, until_unsure = note_pulse(others)
local quiet, unsure = now < until_quiet, now < until_unsure
redis.call('HSET', WORKERS, name, epoch .. ' ' .. whole(now + lease))
redis.call('HSET', LOAD, name, ARGV[9])

local living, silent, is_silent = {}, {}, {}
for who, worker in pairs(workers) do
  if who ~= name and worker[2] < now and not quiet then
    die(who, worker[1])
  else
    table.insert(living, who)
    if who ~= name and worker[2] - now < lease / 2 then
      is_silent[who] = true
      table.insert(silent, who)
      table.insert(silent, math.ceil(math.max(worker[2], until_quiet) - now))
    end
  end
end
table.sort(living)
local same = ARGV[7] ~= '' and ARGV[7] == version() and not unsure
if not same and ARGV[8] == '-' then
  return {'TELL'}
end

-- Moves that were agreed on, block -> {to, hosts, from}; '' is from nobody any more. What a worker
-- is to get counts as its load, and what it is to give no more.
local moves, loads, coming = {}, {}, 0
for _, who in ipairs(living) do
  loads[who] = tonumber(redis.call('HGET', LOAD, who) or '0')
end
for block in ARGV[11]:gmatch('%d+') do
  redis.call('HDEL', MOVES, block)
end
local flat = redis.call('HGETALL', MOVES)
for at = 1, #flat, 2 do
  local to, hosts, from = flat[at + 1]:match('^(%S+) (%d+) (.*)$')
  if loads[to] then
    moves[flat[at]] = {to = to, from = from}
    loads[to] = loads[to] + tonumber(hosts)
    if loads[from] then
      loads[from] = loads[from] - tonumber(hosts)
    end
    coming = coming + (to == name and 1 or 0)
  else
    redis.call('HDEL', MOVES, flat[at])
  end
end

-- A block goes to the worker with the least load, where that leaves this one with no less.
if not unsure then
  for block, hosts in ARGV[10]:gmatch('(%d+):(%d+)') do
    local to
    for _, who in ipairs(living) do
      if who ~= name and not is_silent[who] and (not to or loads[who] < loads[to]) then
        to = who
      end
    end
    hosts = tonumber(hosts)
    if to and not moves[block] and loads[name] - loads[to] >= 2 * hosts then
      redis.call('HSET', MOVES, block, to .. ' ' .. whole(hosts) .. ' ' .. name)
      loads[name], loads[to] = loads[name] - hosts, loads[to] + hosts
      moves[block] = {to = to, from = name}
    end
  end
end
local going = {}
for block, move in pairs(moves) do
  if move.from == name then
    table.insert(going, block)
  end
end

local function answer(kind, given, excess)
  return {
    kind,
    #living,
    quiet and 1 or 0,
    given,
    excess,
    redis.call('HGETALL', DEAD),
    has_ended() and 1 or 0,
    silent,
    unsure and '' or version(), -- else what is free now would never be looked at
    going,
    coming,
  }
end

if same then
  return answer('SAME', {}, 0)
end

local claims = {}
for block, token in ARGV[8]:gmatch('(%d+):(%d+)') do
  claims[block] = token
end
local held, free, given, changed = 0, {}, {}, false
-- Blocks whose owner nobody knows any more, as keys were lost: without these they would stay its own
-- for ever. Who takes one applies its last commit first.
if not unsure then
  changed = free_orphans()
end
local owners = all_blocks()
for number = 0, total - 1 do
  local block = whole(number)
  local owner, claim, move = owners[block], claims[block], moves[block]
  if claim then
    if move and move.to ~= name and move.from ~= name then
      redis.call('HDEL', MOVES, block) -- it came here another way
    end
    if not owner or tonumber(owner[2]) < tonumber(claim) then
      redis.call('HSET', BLOCKS, block, epoch .. ' ' .. claim) -- Redis had forgotten it
      changed = true
    elseif owner[1] ~= epoch or owner[2] ~= claim then
      return {'FENCED', 'block ' .. block .. ' has another owner'}
    end
    held = held + 1
  elseif owner and owner[1] == epoch then
    if unsure then
      redis.call('HDEL', BLOCKS, block) -- Redis had forgotten that it was given up
      changed = true
    else
      table.insert(given, {block, owner[2]}) -- the answer that said so was lost
    end
  elseif not owner and move and move.to == name then
    table.insert(free, 1, block)
  elseif not owner and not move then
    table.insert(free, block)
  end
end

local share = math.floor(total / #living)
for at, who in ipairs(living) do
  if who == name and at <= total % #living then
    share = share + 1
  end
end
if not unsure then
  for _, block in ipairs(free) do
    if held + #given >= share and not moves[block] then
      break
    end
    local token = next_token()
    redis.call('HSET', BLOCKS, block, epoch .. ' ' .. token)
    table.insert(given, {block, token})
    changed = true
  end
end
if changed then
  touch()
end
local begun, assigned = redis.call('HGET', PULSE, 'begun') or '', {}
for _, pair in ipairs(given) do
  redis.call('HDEL', IDLE, name)
  local run = redis.call('HGET', RUNS, pair[1])
  redis.call('HSET', RUNS, pair[1], begun)
  local is_move = moves[pair[1]] and moves[pair[1]].to == name and 1 or 0
  table.insert(assigned, {pair[1], pair[2], run == begun and 0 or 1, is_move})
end
return answer('HELD', assigned, math.max(0, held + #given - share))
