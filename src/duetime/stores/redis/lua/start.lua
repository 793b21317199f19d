#!lua flags=allow-oom
-- Execute a decision about candidates, if all it depended on is as it was. ARGV: node, error of a job that is
-- asked to stop, then facts and actions: of each kind the number, and the values of each.
-- Facts: limits (target, row), keys (limit key, permits, use), rivals (schedule, id, rival or ''), queues (name,
-- row, spent_until, starts, max_running). Actions: start (id, permit), wait (id, permit), ask (id, due_at),
-- skip (id, reason), cancel (id), spend (limit key, use), spent (queue, spent_until), promote (permit, number).
-- A candidate that another claim took in the meantime is left out.
-- Returns 'stale'; or 'done', started jobs, lanes of promoted jobs, running jobs asked to stop (id, node),
-- lanes of pending ones.
local node, now, plan, at = ARGV[1], now_micros(), {}, 3
local function read(kind, width)
    local number = tonumber(ARGV[at])
    at, plan[kind] = at + 1, {}
    for i = 1, number do
        plan[kind][i] = {unpack(ARGV, at, at + width - 1)}
        at = at + width
    end
end
read('limits', 2) read('keys', 3) read('rivals', 3) read('queues', 5)
read('start', 2) read('wait', 2) read('ask', 2) read('skip', 2) read('cancel', 1)
read('spend', 2) read('spent', 2) read('promote', 2)
if not may_claim(node, now) then return {'done', {}, {}, {}, {}} end

local function is_current()
    for _, fact in ipairs(plan.limits) do
        if call('HGET', LIMITS, fact[1]) ~= fact[2] then return false end
    end
    for _, fact in ipairs(plan.keys) do
        if call('HLEN', permits_key(fact[1])) ~= tonumber(fact[2]) then return false end
        if (call('HGET', KEY_USE, fact[1]) or '') ~= fact[3] then return false end
    end
    for _, fact in ipairs(plan.rivals) do
        local started, id, rival = started_key(fact[1]), fact[2], fact[3]
        if rival ~= '' and call('SISMEMBER', started, rival) == 0 then return false end
        if rival == '' and call('SCARD', started) > call('SISMEMBER', started, id) then return false end
    end
    for _, fact in ipairs(plan.queues) do
        local name, row, spent_until, starts, max_running = unpack(fact)
        if call('HGET', RESTRICTED, name) ~= row then return false end
        if (call('HGET', QUEUE_SPENT, name) or '0') ~= spent_until then return false end
        if max_running ~= '0' and starts ~= '0' and running_in(name) + starts > tonumber(max_running) then
            return false
        end
    end
    return true
end
if not is_current() then return {'stale'} end

-- The job, if it is still claimable
local function candidate(id)
    local row = call('HGET', JOBS, id)
    local job = row and read_row(row)
    if job and call('ZSCORE', index_key(job.lane, index_part(job)), id) then return row, job end
end

local started, lanes, stopped, hurried = {}, {}, {}, {}
for _, action in ipairs(plan.start) do
    local row, job = candidate(action[1])
    if job then
        forget(action[1], job)
        started[#started + 1] = start_job(action[1], row, job, node, now, action[2])
    end
end
for _, action in ipairs(plan.wait) do
    local _, job = candidate(action[1])
    if job then
        forget(action[1], job)
        wait(action[1], job, action[2])
    end
end
for _, action in ipairs(plan.ask) do
    local row, job = candidate(action[1])
    if job then
        job.due_at = tonumber(action[2])
        call('HSET', JOBS, action[1], with_due(row, job.due_at))
        push(action[1], job)
    end
end
for _, action in ipairs(plan.skip) do
    local row, job = candidate(action[1])
    if job then end_pending(action[1], row, job, SKIPPED, now, action[2]) end
end
for _, action in ipairs(plan.cancel) do
    local id = action[1]
    local row = call('HGET', JOBS, id)
    local job = row and read_row(row)
    if job and not has(job.flags, CANCEL) then
        local run = call('HGET', RUNNING, id)
        row = with_flags(row, job.flags + CANCEL)
        call('HSET', ERRORS, id, ARGV[2])
        if not run then -- a retry: it need not wait any longer to hear that it is to stop
            forget(id, job)
            job.due_at = math.min(job.due_at, now)
            row = with_due(row, job.due_at)
            push(id, job)
            hurried[#hurried + 1] = job.lane
        else
            local _, holder = unpack_struct(RUN, run)
            if holder > 0 then
                call('HSET', CANCELS, id, holder)
                stopped[#stopped + 1] = {id, holder}
            end
        end
        call('HSET', JOBS, id, row)
    end
end
for _, action in ipairs(plan.spend) do call('HSET', KEY_USE, action[1], action[2]) end
for _, action in ipairs(plan.spent) do call('HSET', QUEUE_SPENT, action[1], action[2]) end
for _, action in ipairs(plan.promote) do
    for _, lane in ipairs(promote(action[1], tonumber(action[2]))) do lanes[#lanes + 1] = lane end
end
return {'done', started, lanes, stopped, hurried}
