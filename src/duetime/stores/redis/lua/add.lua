#!lua
-- Store jobs. ARGV: number of groups, groups, number of others, others.
-- Group: jobs of one index without unique key and schedule, whose due_at is their fire_time:
--   lane, queue \0 tenant, part of the index, n, then n times id, due_at, row without counts.
-- Other: id, row without counts, permit it waits for or ''.
-- Returns, for each of the others, its id or that of the live job that holds its unique key.
local now, at = now_micros(), 2
local head = pack('>I4I4I4i8', 0, 0, 0, now)

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

-- The same with fewer calls: most jobs are stored one by one
local function add_one(lane, index, id, due_at, rest)
    if call('HEXISTS', PAST, id) == 1 or call('HSETNX', JOBS, id, head .. rest) == 0 then return end
    call('HINCRBY', LIVE, lane, '1')
    call('ZADD', index, due_at, id)
    local entries = changes_of(listed, list_name(LISTED_LIVE, string.match(lane, '([^%z]*)$'), ''))
    entries[#entries + 1] = id
end

for _ = 1, tonumber(ARGV[1]) do
    local lane, used, part, number = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
    at = at + 4
    local index = index_key(lane, part)
    if number == 1 then
        add_one(lane, index, ARGV[at], ARGV[at + 1], ARGV[at + 2])
    else
        for first = 0, number - 1, MANY do add_some(lane, index, at + 3 * first, math.min(MANY, number - first)) end
    end
    register_index(lane, part)
    call('SADD', USED, used)
    at = at + 3 * number
end

local stored = {}
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

return stored
