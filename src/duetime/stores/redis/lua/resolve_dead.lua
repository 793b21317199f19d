#!lua
-- Mark a dead letter as retried or discarded, or a skipped job as retried. ARGV: id, tenant, then of the retry: id, row without counts.
-- Returns 1, 0 when the job is not one or is marked already, or the id of the job that holds the unique key.
local id, retry = ARGV[1], ARGV[3]
local past = call('HGET', PAST, id)
if not past or tenant_of(live_part(past)) ~= ARGV[2] then return 0 end
local state, disposition = string.byte(past, 1, 2)
if not (state == DEAD_LETTER or retry and state == SKIPPED) or disposition ~= 0 then return 0 end
if retry then
    local row = new_row(now_micros(), ARGV[4])
    local unique = read_row(row).unique
    local holder = #unique > 0 and call('HGET', UNIQUE, unique)
    if holder then return holder end
    if call('HEXISTS', JOBS, retry) == 0 and call('HEXISTS', PAST, retry) == 0 then store_job(retry, row, false) end
end
call('HSET', PAST, id, string.sub(past, 1, 1) .. string.char(retry and 1 or 2) .. string.sub(past, 3))
if state == DEAD_LETTER then
    local job = read_row(live_part(past))
    change_lists(unlisted, LISTED_PAST[DEAD_LETTER], id, job)
    change_lists(listed, LISTED_RESOLVED, id, job)
end
return 1
