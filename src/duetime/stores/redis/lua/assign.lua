#!lua flags=allow-oom
-- A new job starts on the worker whose offer is the oldest, without being claimed. Without an offer, hint at it.
-- ARGV: id, hint.
local MAX_OFFERS = '4' -- to look at
local id, now = ARGV[1], now_micros()

local function accepts(node, job)
    local accepted = call('HGET', OFFERED, node)
    if not accepted then return false end
    local lanes, at = unpack_struct('>I4c0', accepted)
    return string.find(lanes, '\0\0' .. job.lane .. '\0\0', 1, true)
        and string.find(accepted, '\0' .. job.target .. '\0', at, true)
end

-- The message is for one process. If none gets it, that process is dead
local function reaches(node, row)
    local receivers = redis.pcall('PUBLISH', CHANNEL .. ':' .. node, id .. row)
    return type(receivers) == 'number' and receivers > 0
end

local function assign(nodes)
    local row = call('HGET', JOBS, id)
    local job = row and read_row(row)
    if not job or has(job.flags, NEEDS_PERMIT) or job.due_at > now then return false end
    if call('HEXISTS', RESTRICTED, (split_lane(job.lane))) == 1 then return false end
    for _, node in ipairs(nodes) do
        if accepts(node, job) then
            call('ZREM', OFFERS, node)
            local index = index_key(job.lane, index_part(job))
            if call('ZREM', index, id) == 0 then return false end -- it is claimed
            if reaches(node, row) then
                start_job(id, row, job, node, now, '')
                call('HSET', ASSIGNED, node, id)
                return true
            end
            call('ZADD', index, text(job.due_at), id)
        end
    end
    return false
end

local nodes = call('ZRANGE', OFFERS, text(now), '+inf', 'BYSCORE', 'LIMIT', '0', MAX_OFFERS)
if #nodes == 0 or not assign(nodes) then call('PUBLISH', CHANNEL, ARGV[2]) end
return false
