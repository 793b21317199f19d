#!lua flags=allow-oom
-- Cancel a job. ARGV: id, tenant, reason. Returns the outcome and what belongs to it:
--   missing | final | cancelled, lanes | requested, node |
--   external, row, attempt: its end is to be settled
local id, now = ARGV[1], now_micros()
local row = call('HGET', JOBS, id)
if not row then
    local past = call('HGET', PAST, id)
    return {past and tenant_of(live_part(past)) == ARGV[2] and 'final' or 'missing'}
end
if tenant_of(row) ~= ARGV[2] then return {'missing'} end
local job, run = read_row(row), call('HGET', RUNNING, id)
if not run then
    end_pending(id, row, job, CANCELLED, now, ARGV[3])
    local lanes = let_next_ask(job)
    for _, lane in ipairs(free_schedule(job)) do lanes[#lanes + 1] = lane end
    return {'cancelled', lanes}
end
local attempt, node = unpack_struct(RUN, run)
if node == 0 then return {'external', row, attempt} end
call('HSET', CANCELS, id, node)
call('HSET', ERRORS, id, ARGV[3])
if not has(job.flags, CANCEL) then call('HSET', JOBS, id, with_flags(row, job.flags + CANCEL)) end
return {'requested', node}
