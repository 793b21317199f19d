#!lua flags=allow-oom
-- A worker that has room offers a slot: the next job that is stored alone may be assigned to it (add.lua).
-- ARGV: node, how long the offer holds, id of the last assigned job that came in ('': none), lanes, targets.
-- Returns an assigned job whose message was lost, and makes no offer then: id, row.
local node, last, now = ARGV[1], ARGV[3], now_micros()
local lease = tonumber(call('ZSCORE', ALIVE, node) or 0)
if lease <= now then return false end
local assigned = call('HGET', ASSIGNED, node)
if assigned then
    call('HDEL', ASSIGNED, node)
    local run = assigned ~= last and call('HGET', RUNNING, assigned)
    if run and pack('>I4', node) == string.sub(run, 5, 8) then return {assigned, call('HGET', JOBS, assigned)} end
end
call('ZREMRANGEBYSCORE', OFFERS, '-inf', text(now))
call('ZADD', OFFERS, text(math.min(lease, now + ARGV[2])), node)
local accepted = pack('>I4', #ARGV[4]) .. ARGV[4] .. ARGV[5]
if call('HGET', OFFERED, node) ~= accepted then call('HSET', OFFERED, node, accepted) end
return false
