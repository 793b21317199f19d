#!lua
-- ARGV: kind \0 tenant \0 key, expected version or '', expires_at as >i8, then the value, if it is not to be deleted.
-- Returns the new version, or the version of what was deleted; 0: nothing changed.
local name, expires_at = ARGV[1], unpack_struct('>i8', ARGV[3])
local row = call('HGET', RECORDS, name)
local exists = row and is_current(row, now_micros())
local version = exists and unpack_struct('>i8', row) or 0
if ARGV[2] ~= '' and tonumber(ARGV[2]) ~= version then return 0 end
if not ARGV[4] then
    if exists then forget_record(name) end
    return version
end
version = call('INCR', RECORD_VERSION)
call('HSET', RECORDS, name, pack('>i8', version) .. ARGV[3] .. ARGV[4])
call('ZADD', RECORD_NAMES, 0, name)
if expires_at < 0 then call('ZREM', RECORD_EXPIRY, name) else call('ZADD', RECORD_EXPIRY, text(expires_at), name) end
return version
