-- ARGV 7: names of workers whose processes are known to have ended: their leases are over now.
local workers = all_workers()
for who in ARGV[7]:gmatch('%S+') do
  if workers[who] then
    die(who, workers[who][1])
  end
end
return {'DONE'}
