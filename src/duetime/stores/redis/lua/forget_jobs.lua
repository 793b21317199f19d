#!lua flags=allow-oom
-- Delete jobs, live and past, as if they had never been stored. ARGV: ids. The lists of finished jobs lose them when they are pruned.
for _, id in ipairs(ARGV) do
    local row, past = call('HGET', JOBS, id), call('HGET', PAST, id)
    if row then
        local job, run = read_row(row), call('HGET', RUNNING, id)
        if run then stop_job(id, job, run) else forget(id, job) end
        remove_live(id, job)
        call('SREM', ANNOUNCED, id)
        forget_traces(id, job)
    elseif past then
        forget_past(id, past)
    end
end
for _, hash in ipairs({PAST, CHECKPOINTS, PROGRESS}) do call('HDEL', hash, unpack(ARGV)) end
return 1
