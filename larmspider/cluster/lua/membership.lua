-- What all scripts of the membership begin with. Times are milliseconds since the epoch, by Redis.
-- KEYS: those of the crawl, and the commit record of the worker that it is about
-- ARGV: name, epoch, lease in ms, number of blocks, and for tests the time and the run of Redis.
local WORKERS, BLOCKS, TOKEN, DEAD, PULSE, COMMITS, IDLE, TOTALS, DESCRIPTION, ENDED, RUNS, LOAD,
  MOVES, REFRESH, RECORD = unpack(KEYS)
local name, epoch = ARGV[1], ARGV[2]
local lease, total = tonumber(ARGV[3]), tonumber(ARGV[4])

local function whole(number)
  return string.format('%.0f', number)
end

local now = tonumber(ARGV[5])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

-- name -> {epoch, deadline} of all who are not known to be dead. Nobody's lease ends later than one
-- that begins now: where it would, Redis' clock was set back, and the lease is cut.
local function all_workers()
  local found, flat = {}, redis.call('HGETALL', WORKERS)
  for at = 1, #flat, 2 do
    local of, deadline = flat[at + 1]:match('^(%d+) (%d+)$')
    deadline = tonumber(deadline)
    if deadline > now + lease then
      deadline = now + lease
      redis.call('HSET', WORKERS, flat[at], of .. ' ' .. whole(deadline))
    end
    found[flat[at]] = {of, deadline}
  end
  return found
end

-- block -> {epoch, token}
local function all_blocks()
  local found, flat = {}, redis.call('HGETALL', BLOCKS)
  for at = 1, #flat, 2 do
    local of, token = flat[at + 1]:match('^(%d+) (%d+)$')
    found[flat[at]] = {of, token}
  end
  return found
end

-- Larger than every number before, also where Redis came back without its last seconds: it goes by
-- the time in microseconds, of which one is not enough to give out a token.
local function next_token()
  local last = tonumber(redis.call('GET', TOKEN) or '0')
  local token = whole(math.max(last + 1, now * 1000))
  redis.call('SET', TOKEN, token)
  return token
end

-- Who owns what has changed, or how many workers there are. The number is never used again, also
-- where Redis came back without its last seconds: who knows it knows all that led to it.
local function touch()
  redis.call('HSET', PULSE, 'version', next_token())
end

local function version()
  return redis.call('HGET', PULSE, 'version') or ''
end

-- Until when nobody expires: for a lease after Redis was started again, or after it had heard of
-- nobody for so long that those who live may have been cut off. And until when no block is given
-- out: for a lease after it was started again, as it may have forgotten whose they are.
local function note_pulse(others)
  local run = ARGV[6]
  if run == '' then
    run = redis.call('INFO', 'server'):match('run_id:(%w+)') or 'unknown'
  end
  local known = redis.call('HMGET', PULSE, 'run', 'time', 'quiet', 'unsure')
  local quiet = math.min(tonumber(known[3] or '0'), now + lease)
  local unsure = math.min(tonumber(known[4] or '0'), now + lease)
  if not others then
    quiet, unsure = 0, 0
  elseif known[1] and known[1] ~= run then
    quiet, unsure = now + lease, now + lease
  elseif known[1] and now - tonumber(known[2]) > lease / 2 then
    quiet = now + lease
  end
  redis.call('HSET', PULSE, 'run', run, 'time', whole(now), 'quiet', whole(quiet),
    'unsure', whole(unsure))
  return quiet, unsure
end

local function fenced()
  local mine = all_workers()[name]
  return not mine or mine[1] ~= epoch
end

-- Whether the last commit of the worker has a log that is not applied, as far as Redis knows.
local function unapplied()
  return redis.call('HSTRLEN', RECORD, 'redo') > 0
end

-- Whether Redis knows less than the worker: it has come back without its last commit, or partition.
-- ``known``: serial of its commit and number of partitions that it took, '' where not counted.
local function forgotten(known)
  local serial, taken = known:match('^(%d+) (%d*)$')
  local there = redis.call('HMGET', RECORD, 'serial', 'taken')
  return serial ~= (there[1] or '0') or (taken ~= '' and taken ~= (there[2] or '0'))
end

local function bury(of)
  for block, owner in pairs(all_blocks()) do
    if owner[1] == of then
      redis.call('HDEL', BLOCKS, block)
    end
  end
  touch()
end

-- Free the blocks whose owner is neither alive nor known to be dead. Whether there were some.
local function free_orphans()
  local known, found = {}, false
  for _, worker in pairs(all_workers()) do
    known[worker[1]] = true
  end
  for block, owner in pairs(all_blocks()) do
    if not known[owner[1]] and redis.call('HEXISTS', DEAD, owner[1]) == 0 then
      redis.call('HDEL', BLOCKS, block)
      found = true
    end
  end
  return found
end

local function die(who, of)
  redis.call('HSET', DEAD, of, who)
  redis.call('HDEL', WORKERS, who)
  redis.call('HDEL', IDLE, who)
  redis.call('HDEL', LOAD, who)
  touch()
end

-- The number of commits so far if nobody has work and every block has a living owner, else ''.
-- Blocks are looked through once for each change of owners.
local function at_rest()
  if redis.call('HLEN', DEAD) > 0 then
    return ''
  end
  local living = {}
  for who, worker in pairs(all_workers()) do
    if redis.call('HEXISTS', IDLE, who) == 0 then
      return ''
    end
    living[worker[1]] = true
  end
  local commits = redis.call('GET', COMMITS) or '0'
  if redis.call('HGET', PULSE, 'whole') == version() then
    return commits
  end
  local blocks = all_blocks()
  for block = 0, total - 1 do
    local owner = blocks[whole(block)]
    if not owner or not living[owner[1]] then
      if free_orphans() then
        touch() -- so that the next beats give them out
      end
      return ''
    end
  end
  redis.call('HSET', PULSE, 'whole', version())
  return commits
end

local function has_ended()
  local ended = redis.call('GET', ENDED)
  return ended and ended == (redis.call('GET', COMMITS) or '0')
end
