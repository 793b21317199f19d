#!lua flags=no-writes
-- ARGV: ids; without ids, those of the running jobs. Returns the jobs that exist, as `read_job` does.
local ids, found = #ARGV > 0 and ARGV or call('HKEYS', RUNNING), {}
for first = 1, #ids, MANY do
    local last = math.min(#ids, first + MANY - 1)
    local columns = {}
    for place, hash in ipairs({JOBS, PAST, RUNNING, CHECKPOINTS, PROGRESS, ERRORS}) do
        columns[place] = call('HMGET', hash, unpack(ids, first, last))
    end
    local live, past, run, checkpoint, progress, error = unpack(columns)
    for i = 1, last - first + 1 do
        if live[i] or past[i] then
            found[#found + 1] = {ids[first + i - 1], live[i], not live[i] and past[i], run[i], checkpoint[i], progress[i], error[i]}
        end
    end
end
return found
