#!lua flags=allow-oom
-- Forget limit keys whose starts are all earned again. ARGV: cursor, how many to look at. Returns the next cursor.
local now, found = now_micros(), call('HSCAN', KEY_USE, ARGV[1], 'COUNT', ARGV[2])
for at = 1, #found[2], 2 do
    if math.max(unpack_struct('>i8i8i8', found[2][at + 1])) < now then call('HDEL', KEY_USE, found[2][at]) end
end
return found[1]
