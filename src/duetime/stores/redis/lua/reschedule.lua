#!lua flags=allow-oom
-- Change due_at or priority of a pending job. ARGV: id, tenant, due_at or '', priority or ''.
-- Returns due_at and lanes with claimable jobs, or nothing when the job is not pending.
local id = ARGV[1]
local row = call('HGET', JOBS, id)
if not row or tenant_of(row) ~= ARGV[2] or call('HEXISTS', RUNNING, id) == 1 then return false end
local job = read_row(row)
forget(id, job)
local lanes = let_next_ask(job)
local queue, _, tenant = split_lane(job.lane)
if ARGV[4] ~= '' then
    local lane = queue .. '\0' .. ARGV[4] .. '\0' .. tenant
    call('HINCRBY', LIVE, job.lane, -1)
    call('HINCRBY', LIVE, lane, 1)
    row = with_lane(row, job, lane)
    job.lane = lane
end
if ARGV[3] ~= '' then
    job.due_at = tonumber(ARGV[3])
    row = with_due(row, job.due_at)
end
call('HSET', JOBS, id, row)
push(id, job)
lanes[#lanes + 1] = job.lane
return {text(job.due_at), lanes}
