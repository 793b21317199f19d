-- Rows of schedules, nodes and records.
--
-- Schedule >i8 version, i8 runs, B paused, i8 next_fire_time, i8 last_fire_time, i8 created_at, i8 updated_at, 8 bytes that name the write,
--          then a part that only Python reads. An instant of -1 is none. Instants are copied as bytes: numbers are not exact after 2255
-- Version  >i8 version, i8 at, 16 bytes id of the schedule, I2+author and change, then the row of the schedule
-- Node     >B state, i8 started_at, i8 end of its lease (once it is dead; before that ALIVE has it), then a part that only Python reads
-- Record   >i8 version, i8 expires_at (-1: never), then its value
local NO_INSTANT = '\255\255\255\255\255\255\255\255' -- -1

local function read_schedule(row)
    local found = {}
    found.version, found.runs, found.paused = unpack_struct('>i8i8B', row)
    found.cursor, found.last = string.sub(row, 18, 25), string.sub(row, 26, 33)
    found.created_at, found.updated_at = string.sub(row, 34, 41), string.sub(row, 42, 49)
    found.write, found.rest = string.sub(row, 50, 57), string.sub(row, 58)
    return found
end

local function schedule_row(one)
    return pack('>i8i8B', one.version, one.runs, one.paused) .. one.cursor .. one.last .. one.created_at .. one.updated_at .. one.write .. one.rest
end

local function later(one, other) return unpack_struct('>i8', one) < unpack_struct('>i8', other) and other or one end

local function move_cursor(id, segment, one)
    if one and one.paused == 0 and one.cursor ~= NO_INSTANT then
        call('ZADD', cursors_key(segment), text(unpack_struct('>i8', one.cursor)), id)
    else
        call('ZREM', cursors_key(segment), id)
    end
end

-- `name`: tenant \0 name \0
local function read_version(version, name)
    local number, at = unpack_struct('>i8i8', version, #name + 1)
    return number, at, string.sub(version, #name + 17, #name + 32)
end

local NODE_ALIVE, NODE_DEAD, NODE_LEFT = 0, 1, 2

local function is_current(record, now)
    local _, expires_at = unpack_struct('>i8i8', record)
    return expires_at < 0 or expires_at > now
end

local function forget_record(name)
    call('HDEL', RECORDS, name)
    call('ZREM', RECORD_NAMES, name)
    call('ZREM', RECORD_EXPIRY, name)
end

-- Arguments: kind \0 tenant \0 key, expected version or '', expires_at as >i8, then the value, if it is not to be deleted.
-- Returns the new version, or the version of what was deleted; 0: nothing changed.
local function write_record(arguments)
    local name, expires_at = arguments[1], unpack_struct('>i8', arguments[3])
    local row = call('HGET', RECORDS, name)
    local exists = row and is_current(row, now_micros())
    local version = exists and unpack_struct('>i8', row) or 0
    if arguments[2] ~= '' and tonumber(arguments[2]) ~= version then return 0 end
    if not arguments[4] then
        if exists then forget_record(name) end
        return version
    end
    version = call('INCR', RECORD_VERSION)
    call('HSET', RECORDS, name, pack('>i8', version) .. arguments[3] .. arguments[4])
    call('ZADD', RECORD_NAMES, 0, name)
    if expires_at < 0 then call('ZREM', RECORD_EXPIRY, name) else call('ZADD', RECORD_EXPIRY, text(expires_at), name) end
    return version
end
