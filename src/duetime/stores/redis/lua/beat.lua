#!lua flags=allow-oom
-- ARGV: node, ttl. Returns whether it is alive, the number of other workers, and the ids of its jobs that were asked to stop.
local node = ARGV[1]
local alive = call('ZSCORE', ALIVE, node) and 1 or 0
if alive == 1 then call('ZADD', ALIVE, text(now_micros() + ARGV[2]), node) end
local cancels = {}
local asked = call('HGETALL', CANCELS)
for at = 1, #asked, 2 do
    if asked[at + 1] == node then cancels[#cancels + 1] = asked[at] end
end
return {alive, call('SCARD', WORKERS) - call('SISMEMBER', WORKERS, node), cancels}
