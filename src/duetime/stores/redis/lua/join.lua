#!lua flags=allow-oom
-- ARGV: ttl, whether it is a worker (0 or 1), the part of its row that only Python reads, then target and limit of each of its limits.
local now = now_micros()
local node = call('INCR', NODE_NUMBER)
call('HSET', NODES, node, pack('>Bi8i8', NODE_ALIVE, now, 0) .. ARGV[3])
call('ZADD', ALIVE, text(now + ARGV[1]), node)
if ARGV[2] == '1' then call('SADD', WORKERS, node) end
for at = 4, #ARGV, 2 do call('HSET', LIMITS, ARGV[at], ARGV[at + 1]) end
return node
