#!lua flags=allow-oom
-- Keep what running attempts report. ARGV: for each id, attempt, checkpoint, progress, started, deadline; of
-- checkpoint and progress '' or '\1' and the value. Returns the ids that were refused.
local refused = {}
for at = 1, #ARGV, 6 do
    local id, deadline = ARGV[at], ARGV[at + 5]
    local run = call('HGET', RUNNING, id)
    local attempt, node = 0, 0
    if run then attempt, node = unpack_struct(RUN, run) end
    if not run or attempt ~= tonumber(ARGV[at + 1]) or (deadline ~= '' and node > 0) then
        refused[#refused + 1] = id
    else
        if ARGV[at + 2] ~= '' then call('HSET', CHECKPOINTS, id, string.sub(ARGV[at + 2], 2)) end
        if ARGV[at + 3] ~= '' then call('HSET', PROGRESS, id, string.sub(ARGV[at + 3], 2)) end
        local row = (ARGV[at + 4] == '1' or deadline ~= '') and call('HGET', JOBS, id)
        if ARGV[at + 4] == '1' then
            local flags = string.byte(row, 21)
            row = with_flags(row, has(flags, BEGUN) and flags or flags + BEGUN)
        end
        if deadline ~= '' then
            row = with_due(row, tonumber(deadline))
            call('ZADD', EXTERNAL, deadline, id)
        end
        if row then call('HSET', JOBS, id, row) end
    end
end
return refused
