#!lua flags=allow-oom
-- What workers look for. ARGV: the last queue already seen, how many queues or ''.
-- Returns the lanes that have claimable jobs, now or later, and the settings (queue, row) of restricted queues.
local found, queues, last = {}, 0, nil
local limit = tonumber(ARGV[2])
local function restricted_queues()
    local rows = {}
    for _, queue in ipairs(call('HKEYS', RESTRICTED)) do
        rows[#rows + 1] = queue
        rows[#rows + 1] = call('HGET', QUEUES, queue)
    end
    return rows
end
local at = ARGV[1] == '' and '-' or '(' .. ARGV[1] .. '\1'
repeat
    local some = call('ZRANGE', LANES, at, '+', 'BYLEX', 'LIMIT', 0, 500)
    for _, lane in ipairs(some) do
        local filled = false
        for _, part in ipairs(call('SMEMBERS', lane_key(lane))) do
            if call('EXISTS', index_key(lane, part)) == 1 then
                filled = true
            else
                call('SREM', lane_key(lane), part)
            end
        end
        if filled then
            local queue = split_lane(lane)
            if queue ~= last then queues, last = queues + 1, queue end
            if limit and queues > limit then return {found, restricted_queues()} end
            found[#found + 1] = lane
        else
            call('ZREM', LANES, lane)
        end
        at = '(' .. lane
    end
until #some == 0
return {found, restricted_queues()}
