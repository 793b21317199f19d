-- Rows of jobs; rows.py is the same for Python.
--
-- Live row   >I4 attempt, I4 failures, I4 losses, i8 created_at, B flags, i8 due_at, i8 fire_time,
--            I2+text lane, I2+text target, I2+text limit key, B+bytes schedule_id,
--            I2+text unique (tenant \0 key), I2+text schedule, then a part that only Python reads
-- Running    >I4 attempt, I4 node (0: external), i8 claimed_at, then the permit: 16 bytes or none
-- Past row   the end: >B state, B disposition, i8 started_at, i8 finished_at, I4 failures, I4 losses,
--            I4+bytes result, I4+text error (both: empty, or '\1' and the value); then the running record
--            without permit; then the live row as it was, with the counts before the last attempt.
--            An instant of -1 is none.
local NEEDS_PERMIT, OVERLAPS, CANCEL, BEGUN, LIMITED, UNIQUE_KEY, SCHEDULED = 1, 2, 4, 8, 16, 32, 64
local PENDING, RUNS, SUCCEEDED, DEAD_LETTER, CANCELLED, SKIPPED = 0, 2, 3, 4, 5, 6
local ROW = '>I4I4I4i8Bi8i8I2c0I2c0I2c0Bc0I2c0I2c0'
local LANE_AT = 38 -- where the lane begins in a live row
local RUN = '>I4I4i8'
local NEVER_RAN = '\0\0\0\0\255\255\255\255\255\255\255\255' -- node 0, claimed_at -1

local function has(flags, bit) return math.floor(flags / bit) % 2 == 1 end

local function read_row(row)
    local job = {}
    job.attempt, job.failures, job.losses, job.created_at, job.flags, job.due_at, job.fire_time,
        job.lane, job.target, job.limit_key, job.schedule_id, job.unique, job.schedule = unpack_struct(ROW, row)
    job.fire_bytes = string.sub(row, 30, 37)
    return job
end

local function split_lane(lane)
    local queue, priority, tenant = string.match(lane, '^(.-)%z(%d+)%z(.*)$')
    return queue, tonumber(priority), tenant
end

local function index_part(job)
    return (has(job.flags, NEEDS_PERMIT) and '1' or '0') .. job.target
end

local function with_due(row, due_at) return string.sub(row, 1, 21) .. pack('>i8', due_at) .. string.sub(row, 30) end
local function with_flags(row, flags) return string.sub(row, 1, 20) .. string.char(flags) .. string.sub(row, 22) end

local function with_lane(row, job, lane)
    return string.sub(row, 1, LANE_AT - 1) .. pack('>I2c0', #lane, lane) .. string.sub(row, LANE_AT + 2 + #job.lane)
end
local function without_unique(row, job)
    local at = LANE_AT + 6 + #job.lane + #job.target + #job.limit_key + #job.schedule_id -- the last byte before it
    local rest = string.sub(row, at + 3 + #job.unique)
    return with_flags(string.sub(row, 1, at), job.flags - UNIQUE_KEY) .. '\0\0' .. rest
end

-- Where the running record inside a past row begins
local function run_place(past)
    local length = unpack_struct('>I4', past, 27)
    return 35 + length + unpack_struct('>I4', past, 31 + length)
end

-- The live row inside a past row
local function live_part(past) return string.sub(past, run_place(past) + 16) end

local function tenant_of(row)
    local _, _, tenant = split_lane((unpack_struct('>I2c0', row, LANE_AT)))
    return tenant
end

-- A job as a caller reads it: id, live row, past row, running record, checkpoint, progress, error
local function read_job(id)
    local live = call('HGET', JOBS, id)
    local past = not live and call('HGET', PAST, id)
    if not live and not past then return false end
    return {id, live, past, live and call('HGET', RUNNING, id), call('HGET', CHECKPOINTS, id),
        call('HGET', PROGRESS, id), live and call('HGET', ERRORS, id)}
end

-- Claimable and waiting jobs ---------------------------------------------------------------------------
-- A lane leaves LANES after all its indexes have left it
local function register_index(lane, part)
    if call('SADD', lane_key(lane), part) == 1 then call('ZADD', LANES, '0', lane) end
end

local function push(id, job)
    local part = index_part(job)
    call('ZADD', index_key(job.lane, part), job.due_at, id)
    register_index(job.lane, part)
end

local function place(id, job)
    local _, priority = split_lane(job.lane)
    return pack('>Bi8', 9 - priority, job.due_at) .. id
end

local function wait(id, job, name)
    call('ZADD', waiting_key(name), 0, place(id, job))
    call('ZADD', WAITED, 0, name)
end

local function schedule_permit(schedule_id)
    local hex = string.gsub(schedule_id, '.', function(c) return string.format('%02x', string.byte(c)) end)
    return '/' .. string.sub(hex, 1, 8) .. '-' .. string.sub(hex, 9, 12) .. '-' .. string.sub(hex, 13, 16) ..
        '-' .. string.sub(hex, 17, 20) .. '-' .. string.sub(hex, 21)
end

-- Take a pending job out of its lane, or out of the jobs that wait for a permit
local function forget(id, job)
    if call('ZREM', index_key(job.lane, index_part(job)), id) == 1 then return end
    if has(job.flags, LIMITED) then call('ZREM', waiting_key(job.limit_key), place(id, job)) end
    if #job.schedule_id > 0 then call('ZREM', waiting_key(schedule_permit(job.schedule_id)), place(id, job)) end
end

-- A row as it is stored: `rest` is a live row without its counts and created_at
local function new_row(now, rest) return pack('>I4I4I4i8', 0, 0, 0, now) .. rest end

-- Store a job as pending; the caller has checked its id and unique key
local function store_job(id, row, waits_for)
    local job = read_row(row)
    local queue, _, tenant = split_lane(job.lane)
    call('HSET', JOBS, id, row)
    call('HINCRBY', LIVE, job.lane, 1)
    call('SADD', USED, queue .. '\0' .. tenant)
    if #job.unique > 0 then
        call('HSET', UNIQUE, job.unique, id)
        call('ZADD', keyed_key(job.unique), job.created_at, id)
    end
    if waits_for then wait(id, job, waits_for) else push(id, job) end
    change_lists(listed, LISTED_LIVE, id, job)
end

-- A job that neither runs nor is in its lane leaves the live ones
local function remove_live(id, job)
    call('HDEL', JOBS, id)
    call('HDEL', ERRORS, id)
    call('HINCRBY', LIVE, job.lane, -1)
    if #job.unique > 0 and call('HGET', UNIQUE, job.unique) == id then call('HDEL', UNIQUE, job.unique) end
    if #job.schedule_id > 0 then call('SREM', started_key(job.schedule_id), id) end
    change_lists(unlisted, LISTED_LIVE, id, job)
end

local function remove_pending(id, job)
    forget(id, job)
    remove_live(id, job)
end

-- The past row of a job that ends without running
local function past_row(state, finished_at, error, row)
    return pack('>BBi8i8', state, 0, -1, finished_at) .. string.sub(row, 5, 12) .. pack('>I4I4', 0, #error + 1)
        .. '\1' .. error .. string.sub(row, 1, 4) .. NEVER_RAN .. row
end

local function past_list(past)
    local state, disposition = string.byte(past, 1, 2)
    return disposition ~= 0 and state == DEAD_LETTER and LISTED_RESOLVED or LISTED_PAST[state]
end

local function keep_past(id, job, row)
    call('HSET', PAST, id, row)
    call('RPUSH', finished_key(job.target), id)
    call('SADD', TARGETS, job.target)
    change_lists(listed, past_list(row), id, job)
end

local function forget_traces(id, job)
    if job.unique ~= '' then call('ZREM', keyed_key(job.unique), id) end
    call('DEL', attempts_key(id), markers_key(id))
end

-- The caller deletes its row, checkpoint and progress
local function forget_past(id, past)
    local job = read_row(live_part(past))
    change_lists(unlisted, past_list(past), id, job)
    forget_traces(id, job)
end

-- Store a job that is not to run
local function store_skipped(id, row, now, reason)
    local job = read_row(row)
    local queue, _, tenant = split_lane(job.lane)
    call('SADD', USED, queue .. '\0' .. tenant)
    keep_past(id, job, past_row(SKIPPED, now, reason, row))
end

-- Tell the caller that waits for the end of a job, if there is one. Where this may not be published, it finds out
-- by looking
local function tell_end(id)
    if call('SREM', ANNOUNCED, id) == 0 then return end
    local digits = string.gsub(id, '.', function(byte) return string.format('%02x', string.byte(byte)) end)
    redis.pcall('PUBLISH', CHANNEL, 'd ' .. digits)
end

-- End a job that is not running
local function end_pending(id, row, job, state, now, error)
    remove_pending(id, job)
    keep_past(id, job, past_row(state, now, error, row))
    tell_end(id)
end

-- The best jobs that wait for this permit become claimable; returns their lanes
local function promote(name, number)
    local lanes = {}
    for _, member in ipairs(call('ZRANGE', waiting_key(name), 0, number - 1)) do
        local id = string.sub(member, 10)
        local job = read_row(call('HGET', JOBS, id))
        call('ZREM', waiting_key(name), member)
        push(id, job)
        lanes[#lanes + 1] = job.lane
    end
    return lanes
end

-- Another job may have the place of one that leaves: it was the one to ask for the next permit
local function let_next_ask(job)
    return has(job.flags, LIMITED) and promote(job.limit_key, 1) or {}
end

-- A job of the schedule is final: the next that waits for it may start
local function free_schedule(job)
    if #job.schedule_id == 0 or job.attempt == 0 or call('SCARD', started_key(job.schedule_id)) > 0 then return {} end
    return promote(schedule_permit(job.schedule_id), 1)
end

-- Running jobs -----------------------------------------------------------------------------------------
-- The job has been taken out of its lane. Returns what Python needs: id, row, checkpoint, permit
local function start_job(id, row, job, node, now, permit)
    call('HSET', RUNNING, id, pack(RUN, job.attempt + 1, node, now) .. permit)
    call('HINCRBY', BUSY, job.lane, 1)
    call('HINCRBY', NODE_RUNNING, node, 1)
    if #permit > 0 then call('HINCRBY', permits_key(job.limit_key), permit, 1) end
    if #job.schedule_id > 0 then call('SADD', started_key(job.schedule_id), id) end
    return {id, row, job.attempt > 0 and call('HGET', CHECKPOINTS, id), permit}
end

-- A job stops running. Its row and its place among the live jobs stay
local function stop_job(id, job, run)
    local _, node = unpack_struct(RUN, run)
    local permit = string.sub(run, 17)
    call('HDEL', RUNNING, id)
    call('HINCRBY', BUSY, job.lane, -1)
    if node > 0 then call('HINCRBY', NODE_RUNNING, node, -1) else call('ZREM', EXTERNAL, id) end
    if has(job.flags, CANCEL) then call('HDEL', CANCELS, id) end
    if #permit > 0 and call('HINCRBY', permits_key(job.limit_key), permit, -1) == 0 then
        call('HDEL', permits_key(job.limit_key), permit)
    end
    return permit
end

local function may_claim(node, now)
    local lease = call('ZSCORE', ALIVE, node)
    return lease and tonumber(lease) > now
end

-- Running jobs of a queue, over all its lanes
local function running_in(queue)
    local number, all = 0, call('HGETALL', BUSY)
    for i = 1, #all, 2 do
        if split_lane(all[i]) == queue then number = number + tonumber(all[i + 1]) end
    end
    return number
end
