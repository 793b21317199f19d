#!lua flags=allow-oom
-- Delete past jobs of a target. ARGV: target, before, how many to look at. Returns how many were deleted, and how many were looked at.
-- The list has them in the order in which their ends were written: almost by finished_at.
local target, before, finished = ARGV[1], tonumber(ARGV[2]), finished_key(ARGV[1])
local ids = call('LRANGE', finished, 0, ARGV[3] - 1)
if #ids == 0 then
    call('SREM', TARGETS, target)
    return {0, 0}
end
local gone, kept = {}, {}
for at, past in ipairs(call('HMGET', PAST, unpack(ids))) do
    local id = ids[at]
    if past and unpack_struct('>i8', past, 11) >= before then
        table.insert(kept, 1, id)
    else
        gone[#gone + 1] = id
        if past then forget_past(id, past) end
    end
end
if #gone == 0 then return {0, #ids} end
for _, hash in ipairs({PAST, CHECKPOINTS, PROGRESS}) do call('HDEL', hash, unpack(gone)) end
call('LTRIM', finished, #ids, -1)
if #kept > 0 then call('LPUSH', finished, unpack(kept)) end
return {#gone, #ids}
