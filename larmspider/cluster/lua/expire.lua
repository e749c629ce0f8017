-- ARGV 7: names of workers whose processes are known to have ended: their leases are over now.
-- The answer has those whose leases are not.
local workers = all_workers()
for who in ARGV[7]:gmatch('%S+') do
  if workers[who] then
    die(who, workers[who][1])
    workers[who] = nil
  end
end
local living = {}
for who, worker in pairs(workers) do
  if worker[2] >= now then
    table.insert(living, who)
  end
end
return {'DONE', living}
