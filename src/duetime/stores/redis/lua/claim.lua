#!lua flags=allow-oom
-- Claim jobs. ARGV: node, room, prefetch, window, number of targets, targets, number of lanes, lanes (name,
-- queue, low), then tickets (id, attempt).
--
-- Where no candidate needs a permit or is in a queue with limits, they become running. Returns 'taken', ids, rows,
-- and the checkpoints that there are (id, checkpoint). Otherwise nothing changes. Returns 'decide', the time, the candidates (id, row) and
-- what is in use among the names they need: limits (target, row), limit keys (name, permits, use), rivals (id,
-- another started job of its schedule), queues (name, row, running, spent_until).
local node, room, window = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[4])
local now = now_micros()
local until_ = now + tonumber(ARGV[3])
local until_text = text(until_)
if room <= 0 or not may_claim(node, now) then return {'taken'} end

local targets, at = {}, 6
for _ = 1, tonumber(ARGV[5]) do
    targets[ARGV[at]] = true
    at = at + 1
end
local lanes = {}
local names, first_lane = {}, at + 1
for i = 1, tonumber(ARGV[at]) do names[i] = ARGV[first_lane + 3 * i - 3] end
at = first_lane + 3 * #names

local restricted = {} -- by queue: its row, or false
local any_restricted = call('HLEN', RESTRICTED) > 0
local function restriction(queue)
    if not any_restricted then return false end
    if restricted[queue] == nil then restricted[queue] = call('HGET', RESTRICTED, queue) end
    return restricted[queue]
end
local function is_paused(queue)
    local row = restriction(queue)
    return row and string.byte(row) == 1
end

-- The lanes that have jobs for this node, with their indexes
local must_decide = false
local in_use = {true} -- a lane that a hint has named is asked directly
for i, lane in ipairs(names) do
    if i % MANY == 1 and #names > 1 then
        in_use = call('ZMSCORE', LANES, unpack(names, i, math.min(i + MANY - 1, #names)))
    end
    local queue, low = ARGV[first_lane + 3 * i - 2], ARGV[first_lane + 3 * i - 1]
    local parts = in_use[(i - 1) % MANY + 1] and call('SMEMBERS', lane_key(lane)) or {}
    if #parts > 0 and not is_paused(queue) then
        local found = {lane = lane, queue = queue, low = low, plain = {}, bound = {}}
        for _, part in ipairs(parts) do
            if targets[string.sub(part, 2)] then
                local index = index_key(lane, part)
                local first = call('ZRANGE', index, '-inf', until_text, 'BYSCORE', 'LIMIT', '0', '2', 'WITHSCORES')
                if #first > 0 then
                    local bound = string.byte(part) == 49 -- '1'
                    table.insert(bound and found.bound or found.plain, index)
                    found.only = not bound and #first == 2 and tonumber(first[2]) >= tonumber(low) and first[1]
                    must_decide = must_decide or bound or restriction(queue)
                elseif call('EXISTS', index) == 0 then
                    call('SREM', lane_key(lane), part)
                end
            end
        end
        lanes[#lanes + 1] = found
    end
end

-- Up to `number` jobs of several indexes, oldest due first: ids, and by id the index
local function oldest(indexes, low, number)
    if #indexes == 1 then
        return call('ZRANGE', indexes[1], low, until_text, 'BYSCORE', 'LIMIT', '0', number), indexes[1]
    end
    local found, ids, index_of = {}, {}, {}
    for _, index in ipairs(indexes) do
        local some = call('ZRANGE', index, low, until_text, 'BYSCORE', 'LIMIT', '0', number, 'WITHSCORES')
        for i = 1, #some, 2 do
            found[#found + 1] = {tonumber(some[i + 1]), some[i]}
            index_of[some[i]] = index
        end
    end
    table.sort(found, function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end)
    for i = 1, math.min(number, #found) do ids[i] = found[i][2] end
    return ids, nil, index_of
end

-- Without permits --------------------------------------------------------------------------------------
local ids_taken, rows_taken, checkpoints = {}, {}, {}
local attempt_before, record = -1, nil -- most jobs have the record of the one before

local function take_some(ids, first, last)
    local rows = call('HMGET', JOBS, unpack(ids, first, last))
    local records, offset = {}, #ids_taken
    for i, row in ipairs(rows) do
        local id, attempt = ids[first + i - 1], unpack_struct('>I4', row)
        if attempt ~= attempt_before then
            attempt_before, record = attempt, pack(RUN, attempt + 1, node, now)
        end
        records[2 * i - 1], records[2 * i] = id, record
        ids_taken[offset + i], rows_taken[offset + i] = id, row
        if string.byte(row, 21) >= SCHEDULED then
            local schedule_id = read_row(row).schedule_id
            if schedule_id ~= '' then call('SADD', started_key(schedule_id), id) end
        end
        local checkpoint = attempt > 0 and call('HGET', CHECKPOINTS, id)
        if checkpoint then checkpoints[#checkpoints + 1] = {id, checkpoint} end
    end
    call('HSET', RUNNING, unpack(records))
end

local function take(lane)
    local ids, index, index_of = {lane.only}, lane.plain[1], nil
    if #lane.plain > 1 or not lane.only then ids, index, index_of = oldest(lane.plain, lane.low, room) end
    if #ids == 0 then return end
    if #ids > 1 and index and call('ZRANK', index, ids[1]) == 0 then
        call('ZREMRANGEBYRANK', index, 0, #ids - 1)
    else
        for _, id in ipairs(ids) do call('ZREM', index or index_of[id], id) end
    end
    for first = 1, #ids, MANY do take_some(ids, first, math.min(#ids, first + MANY - 1)) end
    call('HINCRBY', BUSY, lane.lane, #ids)
    room = room - #ids
end

if not must_decide and at > #ARGV then
    for _, lane in ipairs(lanes) do
        if room > 0 and #lane.plain > 0 then take(lane) end
    end
    if #ids_taken > 0 then call('HINCRBY', NODE_RUNNING, node, #ids_taken) end
    return {'taken', ids_taken, rows_taken, checkpoints}
end

-- With permits -----------------------------------------------------------------------------------------
local candidates, jobs = {}, {}

local function consider(id)
    local row = call('HGET', JOBS, id)
    local job = read_row(row)
    candidates[#candidates + 1] = {id, row}
    job.id = id
    jobs[#jobs + 1] = job
end

-- Jobs that a queue's own limit holds up are below the lane's lower bound, and use no room of other lanes
local function consider_lane(lane)
    local limited = restriction(lane.queue)
    local both, due = {}, {}
    if room > 0 and #lane.plain > 0 then
        local ids = oldest(lane.plain, limited and '-inf' or lane.low, room)
        for _, id in ipairs(ids) do both[#both + 1] = id end
        if not limited then room = room - #ids end
    end
    if #lane.bound > 0 then
        for _, id in ipairs((oldest(lane.bound, '-inf', tonumber(ARGV[2]) + window))) do both[#both + 1] = id end
    end
    for _, id in ipairs(both) do due[id] = unpack_struct('>i8', call('HGET', JOBS, id), 22) end
    table.sort(both, function(a, b) return due[a] < due[b] or (due[a] == due[b] and a < b) end)
    for _, id in ipairs(both) do consider(id) end
end

for _, lane in ipairs(lanes) do consider_lane(lane) end
local named = {}
for i = at, #ARGV, 2 do
    local id, row = ARGV[i], call('HGET', JOBS, ARGV[i])
    local job = row and not named[id] and call('HEXISTS', RUNNING, id) == 0 and read_row(row)
    if job and job.attempt == tonumber(ARGV[i + 1]) and job.due_at <= until_ and targets[job.target]
        and not is_paused((split_lane(job.lane))) and call('ZSCORE', index_key(job.lane, index_part(job)), id) then
        named[id] = true
        consider(id)
    end
end

local limits, keys, rivals, queues, seen = {}, {}, {}, {}, {}
for _, job in ipairs(jobs) do
    if has(job.flags, LIMITED) and not seen['t' .. job.target] then
        seen['t' .. job.target] = true
        local limit = call('HGET', LIMITS, job.target)
        if limit then limits[#limits + 1] = {job.target, limit} end
    end
    if has(job.flags, LIMITED) and not seen['k' .. job.limit_key] then
        seen['k' .. job.limit_key] = true
        keys[#keys + 1] = {job.limit_key, call('HLEN', permits_key(job.limit_key)),
            call('HGET', KEY_USE, job.limit_key) or ''}
    end
    if has(job.flags, OVERLAPS) and #job.schedule_id > 0 then
        local rival = ''
        for _, other in ipairs(call('SMEMBERS', started_key(job.schedule_id))) do
            if other ~= job.id then rival = other end
        end
        rivals[#rivals + 1] = {job.id, rival}
    end
    local queue = split_lane(job.lane)
    if restriction(queue) and not seen['q' .. queue] then
        seen['q' .. queue] = true
        queues[#queues + 1] = {queue, restriction(queue), running_in(queue), call('HGET', QUEUE_SPENT, queue) or '0'}
    end
end
return {'decide', text(now), candidates, limits, keys, rivals, queues}
