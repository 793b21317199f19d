#!lua
-- Create, replace or remove a schedule. ARGV: tenant, name, id, segment, expected version, 8 bytes that name this write, author and change,
-- then, unless it is to be removed: paused (0 or 1), next_fire_time (>i8), the part of its row that only Python reads.
-- Returns its id and row; nothing when it is not at that version.
local tenant, schedule, write, change = ARGV[1], ARGV[2], ARGV[6], ARGV[7]
local name, now = tenant .. '\0' .. schedule .. '\0', now_micros()
local now_bytes = pack('>i8', now)
local newest = call('ZRANGE', VERSIONS, '(' .. name .. '\255', '[' .. name, 'BYLEX', 'REV', 'LIMIT', 0, 1)[1]
if newest then
    local _, _, id = read_version(newest, name)
    local row = string.sub(newest, #name + 35 + unpack_struct('>I2', newest, #name + 33))
    if read_schedule(row).write == write then return {id, row} end -- repeated, after its reply was lost
end

local known = call('ZRANGE', SCHEDULE_NAMES, '[' .. name, '(' .. name .. '\255', 'BYLEX', 'LIMIT', 0, 1)[1]
local id = known and string.sub(known, -16) or ARGV[3]
local one = known and read_schedule(call('HGET', SCHEDULES, id))
if (one and one.version or 0) ~= tonumber(ARGV[5]) then return false end

-- Jobs that have not started and whose fire_time is in the future go. Returns how many, and the latest fire_time of the others
local function withdraw()
    local list, number, latest = list_name(LISTED_LIVE, tenant, schedule), 0, NO_INSTANT
    local from = '(' .. list .. '\255'
    while true do
        local chunk = call('ZRANGE', LISTS, from, '[' .. list, 'BYLEX', 'REV', 'LIMIT', 0, 1)[1]
        if not chunk then return number, latest end
        for at = #list + WIDTH + 1, #chunk, WIDTH do
            local job_id = string.sub(chunk, at, at + WIDTH - 1)
            local job = read_row(call('HGET', JOBS, job_id))
            if job.schedule_id == id then
                if job.fire_time > now and job.attempt == 0 and call('HEXISTS', RUNNING, job_id) == 0 then
                    remove_pending(job_id, job)
                    let_next_ask(job)
                    number = number + 1
                else
                    latest = later(latest, job.fire_bytes)
                end
            end
        end
        -- Jobs of the chunks before it fire before the millisecond after its bound
        local milliseconds = unpack_struct('>I6', chunk, #list + 1)
        if latest ~= NO_INSTANT and (milliseconds + 1) * 1000 <= now then return number, latest end
        from = '(' .. chunk
    end
end

local version = (one and one.version or newest and read_version(newest, name) or 0) + 1
if one then
    local withdrawn, latest = withdraw()
    one.runs = one.runs - withdrawn
    if one.last ~= NO_INSTANT then
        latest = later(latest, unpack_struct('>i8', one.last) > now and now_bytes or one.last)
    end
    one.last = latest
else
    one = {runs = 0, last = NO_INSTANT, created_at = now_bytes}
end
one.write = write
if ARGV[8] then
    one.version, one.paused, one.cursor, one.updated_at, one.rest = version, tonumber(ARGV[8]), ARGV[9], now_bytes, ARGV[10]
    call('HSET', SCHEDULES, id, schedule_row(one))
    if not known then call('ZADD', SCHEDULE_NAMES, 0, name .. id) end
    move_cursor(id, ARGV[4], one)
else
    call('HDEL', SCHEDULES, id)
    call('ZREM', SCHEDULE_NAMES, known)
    call('ZADD', REMOVED, text(unpack_struct('>i8', one.created_at)), name .. id)
    move_cursor(id, ARGV[4], nil)
end
local row = schedule_row(one)
call('ZADD', VERSIONS, 0, name .. pack('>i8', version) .. now_bytes .. id .. pack('>I2', #change) .. change .. row)
return {id, row}
