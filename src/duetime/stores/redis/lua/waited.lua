#!lua flags=allow-oom
-- Permits that jobs wait for, and what is in use of them. ARGV: the last name already seen, how many.
-- Returns the time, and for each: name, limit key ('1') or schedule ('0'), row of the limit, permits, use.
local found = {}
local after = ARGV[1] == '' and '-' or '(' .. ARGV[1]
for _, name in ipairs(call('ZRANGE', WAITED, after, '+', 'BYLEX', 'LIMIT', 0, ARGV[2])) do
    local first = call('ZRANGE', waiting_key(name), 0, 0)[1]
    local row = first and call('HGET', JOBS, string.sub(first, 10))
    local job = row and read_row(row)
    if not job then
        call('ZREM', WAITED, name)
    elseif has(job.flags, LIMITED) and job.limit_key == name then
        found[#found + 1] = {name, '1', job.target, call('HGET', LIMITS, job.target) or '',
            call('HLEN', permits_key(name)), call('HGET', KEY_USE, name) or ''}
    else
        found[#found + 1] = {name, '0', job.target, '', call('SCARD', started_key(job.schedule_id)), ''}
    end
end
return {text(now_micros()), found}
