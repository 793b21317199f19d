#!lua
-- Store a job, unless an earlier one with its unique key matches a rule. ARGV: id, row without counts, states
-- that match (codes), within (or ''), on_conflict, error of a replaced job, due_at.
-- Returns id, conflict, lanes with claimable jobs.
local id, now = ARGV[1], now_micros()
local row = new_row(now, ARGV[2])
local job = read_row(row)
local within, on_conflict = tonumber(ARGV[4]), ARGV[5]
local matching = {}
for code in string.gmatch(ARGV[3], '%d') do matching[tonumber(code)] = true end

local function is_recent(created_at) return not within or created_at >= now - within end

local function finished()
    local least = within and now - within or '-inf'
    for _, other in ipairs(call('ZREVRANGEBYSCORE', keyed_key(job.unique), '+inf', least)) do
        local past = call('HGET', PAST, other)
        if past and matching[string.byte(past)] then return other end
    end
end

-- By an earlier call whose reply was lost
local function was_replaced()
    for _, other in ipairs(call('ZRANGE', keyed_key(job.unique), 0, -1)) do
        local past = call('HGET', PAST, other)
        if past and string.find(past, ARGV[6], 1, true) then return true end
    end
end
if call('HEXISTS', JOBS, id) == 1 or call('HEXISTS', PAST, id) == 1 then
    return {id, was_replaced() and 'replaced' or '', {}}
end

local holder = call('HGET', UNIQUE, job.unique)
local held = holder and call('HGET', JOBS, holder)
local holding = held and read_row(held)
local runs = holder and call('HEXISTS', RUNNING, holder) == 1
local lanes = {}
if held and matching[runs and RUNS or PENDING] and is_recent(holding.created_at) then
    if runs or on_conflict == 'skip' then return {holder, 'skipped', {}} end
    if on_conflict == 'reschedule' then
        forget(holder, holding)
        lanes = let_next_ask(holding)
        holding.due_at = tonumber(ARGV[7])
        call('HSET', JOBS, holder, with_due(held, holding.due_at))
        push(holder, holding)
        lanes[#lanes + 1] = holding.lane
        return {holder, 'rescheduled', lanes}
    end
    end_pending(holder, held, holding, CANCELLED, now, ARGV[6])
    lanes = let_next_ask(holding)
    for _, lane in ipairs(free_schedule(holding)) do lanes[#lanes + 1] = lane end
    store_job(id, row, false)
    lanes[#lanes + 1] = job.lane
    return {id, 'replaced', lanes}
end
local earlier = finished()
if earlier then return {earlier, 'skipped', {}} end
if held then -- it does not match: it gives up its key
    call('HDEL', UNIQUE, job.unique)
    call('ZREM', keyed_key(job.unique), holder)
    call('HSET', JOBS, holder, without_unique(held, holding))
end
store_job(id, row, false)
return {id, '', {job.lane}}
