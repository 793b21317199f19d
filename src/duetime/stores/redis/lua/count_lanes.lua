#!lua flags=no-writes
-- ARGV: tenant, queue or '', due_before or ''. Returns how many of their jobs are pending, how many are running, and the time.
local lanes, pending, running = {}, 0, 0
if ARGV[2] ~= '' then
    for priority = 0, 9 do lanes[priority + 1] = ARGV[2] .. '\0' .. priority .. '\0' .. ARGV[1] end
else
    for _, lane in ipairs(call('HKEYS', LIVE)) do
        if string.match(lane, '([^%z]*)$') == ARGV[1] then lanes[#lanes + 1] = lane end
    end
end
for _, lane in ipairs(lanes) do
    local runs = tonumber(call('HGET', BUSY, lane) or 0)
    pending, running = pending + (call('HGET', LIVE, lane) or 0) - runs, running + runs
    if ARGV[3] ~= '' then
        for _, part in ipairs(call('SMEMBERS', lane_key(lane))) do
            pending = pending - call('ZCOUNT', index_key(lane, part), ARGV[3], '+inf')
        end
    end
end
return {pending, running, text(now_micros())}
