#!lua
-- Store jobs as they are. Those that exist are left: the call is repeated. ARGV of each: id, live row, past row or '', running record or '',
-- permit it waits for or '', error, checkpoint, progress (of these three '' or '\1' and the value), number of attempts, attempts, number
-- of fields and values of markers, markers.
local function store_live(id, job, row, run, waits_for)
    call('HSET', JOBS, id, row)
    call('HINCRBY', LIVE, job.lane, 1)
    change_lists(listed, LISTED_LIVE, id, job)
    if #job.unique > 0 then call('HSET', UNIQUE, job.unique, id) end
    if #job.schedule_id > 0 and (job.attempt > 0 or run ~= '') then call('SADD', started_key(job.schedule_id), id) end
    if run == '' then
        if waits_for == '' then push(id, job) else wait(id, job, waits_for) end
        return
    end
    local _, node = unpack_struct(RUN, run)
    local permit = string.sub(run, 17)
    call('HSET', RUNNING, id, run)
    call('HINCRBY', BUSY, job.lane, 1)
    if #permit > 0 then call('HINCRBY', permits_key(job.limit_key), permit, 1) end
    if node == 0 then
        call('ZADD', EXTERNAL, job.due_at, id)
    else
        call('HINCRBY', NODE_RUNNING, node, 1)
        if has(job.flags, CANCEL) then call('HSET', CANCELS, id, node) end
    end
end

local function store_values(id, job, error, checkpoint, progress)
    if error ~= '' then call('HSET', ERRORS, id, string.sub(error, 2)) end
    if checkpoint ~= '' then call('HSET', CHECKPOINTS, id, string.sub(checkpoint, 2)) end
    if progress ~= '' then call('HSET', PROGRESS, id, string.sub(progress, 2)) end
    if #job.unique > 0 then call('ZADD', keyed_key(job.unique), job.created_at, id) end
end

local at = 1
while at <= #ARGV do
    local id, row, past, run, waits_for, error, checkpoint, progress = unpack(ARGV, at, at + 7)
    local attempts = at + 8
    local markers = attempts + 1 + ARGV[attempts]
    at = markers + 1 + ARGV[markers]
    if call('HEXISTS', JOBS, id) == 0 and call('HEXISTS', PAST, id) == 0 then
        local job = read_row(row)
        if past == '' then store_live(id, job, row, run, waits_for) else keep_past(id, job, past) end
        store_values(id, job, error, checkpoint, progress)
        for place = attempts + 1, markers - 1 do call('RPUSH', attempts_key(id), ARGV[place]) end
        for place = markers + 1, at - 1, 2 do call('HSET', markers_key(id), ARGV[place], ARGV[place + 1]) end
    end
end
return 1
