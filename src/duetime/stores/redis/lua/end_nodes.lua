#!lua flags=allow-oom
-- ARGV: 'left' and the node that leaves, or 'expired', the node that asks, and nodes whose process is gone. Returns the nodes that are dead now and were not before.
local has_left, node = ARGV[1] == 'left', ARGV[2]
local ended, found = {}, {node}
if not has_left then found = call('ZRANGE', ALIVE, '-inf', text(now_micros()), 'BYSCORE') end
for at = 3, #ARGV do found[#found + 1] = ARGV[at] end
for _, gone in ipairs(found) do
    local lease_until = (has_left or gone ~= node) and call('ZSCORE', ALIVE, gone)
    if lease_until then
        local row = call('HGET', NODES, gone)
        local state, started_at = has_left and NODE_LEFT or NODE_DEAD, string.sub(row, 2, 9)
        call('HSET', NODES, gone, string.char(state) .. started_at .. pack('>i8', tonumber(lease_until)) .. string.sub(row, 18))
        call('ZREM', ALIVE, gone)
        call('SREM', WORKERS, gone)
        call('SADD', DEAD, gone)
        call('ZREM', OFFERS, gone)
        call('HDEL', OFFERED, gone)
        call('HDEL', ASSIGNED, gone)
        ended[#ended + 1] = gone
    end
end
return ended
