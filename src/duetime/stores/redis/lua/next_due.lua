#!lua flags=allow-oom
-- When the next job falls due. ARGV: prefetch, number of targets, targets, lanes (name, queue).
-- Returns the time, the earliest due_at or nothing, and the queues that have a rate and due jobs: row, spent_until.
local now = now_micros()
local until_ = now + tonumber(ARGV[1])
local targets, at = {}, 3
for _ = 1, tonumber(ARGV[2]) do
    targets[ARGV[at]] = true
    at = at + 1
end
-- A claim leaves jobs that it found by prefetch and that may not start yet: a little before now they count, too
local bound_after = until_ > now and now - 50000 or now
local best, rated = nil, {}
for i = at, #ARGV, 2 do
    local lane, queue = ARGV[i], ARGV[i + 1]
    local row = call('HGET', RESTRICTED, queue)
    if not (row and string.byte(row) == 1) then
        local due = false
        for _, part in ipairs(call('SMEMBERS', lane_key(lane))) do
            if targets[string.sub(part, 2)] then
                local index, after = index_key(lane, part), string.byte(part) == 49 and bound_after or until_
                local first = call('ZRANGE', index, '(' .. text(after), '+inf', 'BYSCORE', 'LIMIT', '0', '1', 'WITHSCORES')
                local at_ = first[2] and tonumber(first[2])
                if at_ and (not best or at_ < best) then best = at_ end
                due = due or #call('ZRANGE', index, '-inf', text(until_), 'BYSCORE', 'LIMIT', '0', '1') > 0
            end
        end
        if row and due then rated[#rated + 1] = {row, call('HGET', QUEUE_SPENT, queue) or '0'} end
    end
end
return {text(now), best and text(best) or false, rated}
