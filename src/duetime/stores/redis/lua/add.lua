#!lua
-- Store jobs. ARGV: number of hints, hints, number of groups, groups, number of others, others.
-- A job that is the only one starts at once on a worker that has offered a slot (offer.lua). Otherwise the hints
-- are published.
-- Group: jobs of one index without unique key and schedule, whose due_at is their fire_time:
--   lane, queue \0 tenant, part of the index, n, then n times id, due_at, row without counts.
-- Other: id, row without counts, permit it waits for or ''.
-- Returns whether the only job has started (0 or 1), and for each of the others its id or that of the live job
-- that holds its unique key.
local MAX_OFFERS = '4' -- to look at, the oldest first
local CLOCKS_DIFFER = 10000 -- a job of "now" may be so much ahead. Workers wait for its time
local NO_PERMIT = string.byte('0')
local now, hints = now_micros(), tonumber(ARGV[1])
local groups, at = tonumber(ARGV[hints + 2]), hints + 3
local head, assigned = pack('>I4I4I4i8', 0, 0, 0, now), false

local function add_some(lane, index, first, number)
    local ids, rows, places, size = {}, {}, {}, 0
    local entries = changes_of(listed, list_name(LISTED_LIVE, string.match(lane, '([^%z]*)$'), ''))
    for i = 1, number do ids[i] = ARGV[first + 3 * i - 3] end
    local listed_before = #entries
    local known = call('HMGET', JOBS, unpack(ids))
    local finished = call('HMGET', PAST, unpack(ids))
    for i = 1, number do
        if not known[i] and not finished[i] then
            local id, rest = ids[i], ARGV[first + 3 * i - 1]
            rows[size + 1], rows[size + 2] = id, head .. rest
            places[size + 1], places[size + 2] = ARGV[first + 3 * i - 2], id
            size = size + 2
            entries[listed_before + size / 2] = id
        end
    end
    if size == 0 then return end
    call('HINCRBY', LIVE, lane, call('HSET', JOBS, unpack(rows)))
    call('ZADD', index, unpack(places))
end

local function accepts(node, lane, target)
    local accepted = call('HGET', OFFERED, node)
    if not accepted then return false end
    local lanes, after = unpack_struct('>I4c0', accepted)
    return string.find(lanes, '\0\0' .. lane .. '\0\0', 1, true)
        and string.find(accepted, '\0' .. target .. '\0', after, true)
end

-- Start a job that needs no permit on a worker without a claim. The message is for one process: if none gets
-- it, that process is dead
local function assign(lane, target, id, due_at, row)
    if call('EXISTS', OFFERS) == 0 or tonumber(due_at) > now + CLOCKS_DIFFER then return false end
    local nodes = call('ZRANGE', OFFERS, text(now), '+inf', 'BYSCORE', 'LIMIT', '0', MAX_OFFERS)
    if #nodes == 0 or call('HEXISTS', RESTRICTED, (split_lane(lane))) == 1 then return false end
    for _, node in ipairs(nodes) do
        if accepts(node, lane, target) then
            call('ZREM', OFFERS, node)
            local receivers = redis.pcall('PUBLISH', CHANNEL .. ':' .. node, id .. row)
            if type(receivers) == 'number' and receivers > 0 then
                start_job(id, row, {attempt = 0, lane = lane, limit_key = '', schedule_id = ''}, node, now, '')
                call('HSET', ASSIGNED, node, id)
                return true
            end
        end
    end
    return false
end

-- As `add_some`, with fewer calls: most jobs are stored one by one
local function add_one(lane, index, part, id, due_at, rest, is_alone)
    local row = head .. rest
    if call('HEXISTS', PAST, id) == 1 or call('HSETNX', JOBS, id, row) == 0 then return end
    call('HINCRBY', LIVE, lane, '1')
    local entries = changes_of(listed, list_name(LISTED_LIVE, string.match(lane, '([^%z]*)$'), ''))
    entries[#entries + 1] = id
    assigned = is_alone and string.byte(part) == NO_PERMIT and assign(lane, string.sub(part, 2), id, due_at, row)
    if not assigned then
        call('ZADD', index, due_at, id)
        register_index(lane, part)
    end
end

for _ = 1, groups do
    local lane, used, part, number = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
    at = at + 4
    local index = index_key(lane, part)
    if number == 1 then
        local is_alone = groups == 1 and ARGV[at + 3] == '0'
        add_one(lane, index, part, ARGV[at], ARGV[at + 1], ARGV[at + 2], is_alone)
    else
        for first = 0, number - 1, MANY do add_some(lane, index, at + 3 * first, math.min(MANY, number - first)) end
        register_index(lane, part)
    end
    call('SADD', USED, used)
    at = at + 3 * number
end

local stored = {assigned and 1 or 0}
for _ = 1, tonumber(ARGV[at]) do
    local id, rest, waits_for = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
    local row = head .. rest
    local unique = read_row(row).unique
    local holder = #unique > 0 and call('HGET', UNIQUE, unique)
    if call('HEXISTS', JOBS, id) == 1 or call('HEXISTS', PAST, id) == 1 then
        stored[#stored + 1] = id
    elseif holder then
        stored[#stored + 1] = holder
    else
        store_job(id, row, #waits_for > 0 and waits_for)
        stored[#stored + 1] = id
    end
    at = at + 3
end

if not assigned then
    for i = 2, hints + 1 do redis.pcall('PUBLISH', CHANNEL, ARGV[i]) end
end
return stored
