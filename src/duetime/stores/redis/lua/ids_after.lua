#!lua flags=no-writes
-- Ids of jobs in order. ARGV: id after which to begin, how many (two or more), names of lists. Returns of each list ids in any order, and
-- bounds: up to the lowest of these, no id of the list is missing. Without a bound none follows.
-- An entry has its microseconds inside the id: the jobs of a millisecond are in the order of their ids only for each microsecond.
local after, number = ARGV[1], tonumber(ARGV[2])
local LOWEST, HIGHEST = string.rep('\0', 10), string.rep('\255', 10) -- what follows the milliseconds of an id

local function id_of(entry) return string.sub(entry, 1, 6) .. string.sub(entry, 9) end

-- Calls return the entries of a list in order, from this one on
local function entries_from(name, first)
    local a, b, c = unpack_struct('>I6I6I6', first)
    local chunk = call('ZRANGE', LISTS, '[' .. name .. first .. '\255', '[' .. name, 'BYLEX', 'REV', 'LIMIT', 0, 1)[1]
    local from, size, entries, at = '[' .. (chunk or name), 1, {}, 0
    return function()
        at = at + 1
        while not entries[at] do
            local chunks = call('ZRANGE', LISTS, from, '(' .. name .. '\255', 'BYLEX', 'LIMIT', 0, size)
            if #chunks == 0 then return nil end
            from, size, entries, at = '(' .. chunks[#chunks], math.min(2 * size, 64), {}, 1
            for _, some in ipairs(chunks) do
                for place = #name + WIDTH + 1, #some, WIDTH do
                    local x, y, z = unpack_struct('>I6I6I6', some, place)
                    if not is_before(x, y, z, a, b, c) then entries[#entries + 1] = string.sub(some, place, place + WIDTH - 1) end
                end
            end
            entries = in_order(entries)
        end
        return entries[at]
    end
end

local function ids_of(name)
    local ids, known, bounds = {}, {[after] = true}, {}
    local function add(entry)
        local id = id_of(entry)
        if not known[id] then ids[#ids + 1] = id end
        known[id] = true
    end

    -- Of each microsecond up to `number` ids, from these last bytes on
    local function add_millisecond(millisecond, rest)
        local micros = 0
        while true do
            local instant, added, last = millisecond .. pack('>I2', micros), 0, nil
            local next_entry = entries_from(name, instant .. rest)
            local entry = next_entry()
            while entry and added < number and string.sub(entry, 1, 8) == instant do
                add(entry)
                added, last, entry = added + 1, entry, next_entry()
            end
            if not entry or string.sub(entry, 1, 6) ~= millisecond then return end
            if string.sub(entry, 1, 8) == instant then
                bounds[#bounds + 1] = id_of(last)
                micros = micros + 1
            else
                micros = unpack_struct('>I2', entry, 7)
            end
        end
    end

    local millisecond = string.sub(after, 1, 6)
    add_millisecond(millisecond, string.sub(after, 7))
    if #bounds > 0 then return {ids, bounds} end
    local next_entry = entries_from(name, millisecond .. '\255\255' .. HIGHEST)
    local entry = next_entry()
    while entry and #ids < number do
        add(entry)
        millisecond, entry = string.sub(entry, 1, 6), next_entry()
    end
    if entry and string.sub(entry, 1, 6) == millisecond then add_millisecond(millisecond, LOWEST) end
    if entry and #bounds == 0 then bounds[1] = millisecond .. HIGHEST end
    return {ids, bounds}
end

local found = {}
for at = 3, #ARGV do found[at - 2] = ids_of(ARGV[at]) end
return found
