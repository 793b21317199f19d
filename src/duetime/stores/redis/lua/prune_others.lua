#!lua flags=allow-oom
-- Delete everything old but jobs. ARGV: before, age of old events, how many of a kind. Returns whether there is more.
local before, now, most = tonumber(ARGV[1]), now_micros(), tonumber(ARGV[3])

for _, node in ipairs(call('HKEYS', NODES)) do
    local state, _, lease_until = unpack_struct('>Bi8i8', call('HGET', NODES, node))
    if state ~= NODE_ALIVE and lease_until < before and tonumber(call('HGET', NODE_RUNNING, node) or 0) == 0 then
        call('HDEL', NODES, node)
        call('HDEL', NODE_RUNNING, node)
        call('SREM', DEAD, node)
    end
end

local expired = call('ZRANGE', RECORD_EXPIRY, '-inf', text(now), 'BYSCORE', 'LIMIT', 0, most)
for _, name in ipairs(expired) do forget_record(name) end

-- Events are in the order of their instants
local low, high, oldest = 0, call('LLEN', EVENTS), now - ARGV[2]
while low < high do
    local middle = math.floor((low + high) / 2)
    if unpack_struct('>i8', call('LINDEX', EVENTS, middle)) < oldest then low = middle + 1 else high = middle end
end
if low > 0 then call('LTRIM', EVENTS, low, -1) end

-- Versions of schedules that were removed
local removed = call('ZRANGE', REMOVED, '-inf', '(' .. text(before), 'BYSCORE', 'LIMIT', 0, most)
for _, gone in ipairs(removed) do
    local name, schedule_id = string.sub(gone, 1, -17), string.sub(gone, -16)
    local left
    for _, version in ipairs(call('ZRANGE', VERSIONS, '[' .. name, '(' .. name .. '\255', 'BYLEX')) do
        local _, at, id = read_version(version, name)
        if id == schedule_id then
            if at < before then call('ZREM', VERSIONS, version) else left = left or at end
        end
    end
    if left then call('ZADD', REMOVED, text(left), gone) else call('ZREM', REMOVED, gone) end
end
return (#expired == most or #removed == most) and 1 or 0
