#!lua flags=allow-oom
-- Delete past jobs. ARGV: ids. Returns how many there were. The lists of finished jobs lose them when they are pruned.
local gone = 0
for _, id in ipairs(ARGV) do
    local past = call('HGET', PAST, id)
    if past then
        forget_past(id, past)
        gone = gone + 1
        for _, hash in ipairs({PAST, CHECKPOINTS, PROGRESS}) do call('HDEL', hash, id) end
    end
end
return gone
