#!lua flags=no-writes
-- ARGV: ids. Returns of the jobs that exist: the job as `read_job` returns it, the permit it waits for, attempts, markers.
local function permit_waited_for(id, row)
    local job = read_row(row)
    if call('ZSCORE', index_key(job.lane, index_part(job)), id) then return false end
    if has(job.flags, LIMITED) and call('ZSCORE', waiting_key(job.limit_key), place(id, job)) then return job.limit_key end
    return #job.schedule_id > 0 and schedule_permit(job.schedule_id)
end

local found = {}
for _, id in ipairs(ARGV) do
    local job = read_job(id)
    if job then
        local live, run = job[2], job[4]
        local waits_for = live and not run and has(string.byte(live, 21), NEEDS_PERMIT) and permit_waited_for(id, live)
        found[#found + 1] = {job, waits_for, call('LRANGE', attempts_key(id), 0, -1), call('HGETALL', markers_key(id))}
    end
end
return found
