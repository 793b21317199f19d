#!lua flags=allow-oom
-- All queues. ARGV: counted. Returns names with tenants, settings (queue, row), and if counted of each lane with live
-- jobs: name, pending, due, running.
local counts = {}
if ARGV[1] == '1' then
    local now, all = now_micros(), call('HGETALL', LIVE)
    for i = 1, #all, 2 do
        local lane, live = all[i], tonumber(all[i + 1])
        local pending = live - tonumber(call('HGET', BUSY, lane) or 0)
        local later = 0 -- jobs that wait for a permit are due
        for _, part in ipairs(call('SMEMBERS', lane_key(lane))) do
            later = later + call('ZCOUNT', index_key(lane, part), '(' .. text(now), '+inf')
        end
        if live > 0 then
            counts[#counts + 1] = {lane, pending, pending - later, live - pending}
        else
            call('HDEL', LIVE, lane)
            call('HDEL', BUSY, lane)
        end
    end
end
return {call('SMEMBERS', USED), call('HGETALL', QUEUES), counts}
