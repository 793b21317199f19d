#!lua flags=no-writes
-- Ids of jobs in order. ARGV: id after which to begin, how many, names of lists. Returns of each list ids, and the last of them if others
-- follow it in the list.
local after, number = ARGV[1], tonumber(ARGV[2])

-- Calls return the entries of a list in order, from this one on
local function entries_from(name, first)
    local a, b, c = unpack_struct(NUMBERS, first)
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
                    local x, y, z = unpack_struct(NUMBERS, some, place)
                    if not is_before(x, y, z, a, b, c) then entries[#entries + 1] = string.sub(some, place, place + WIDTH - 1) end
                end
            end
            entries = in_order(entries)
        end
        return entries[at]
    end
end

local function ids_of(name)
    local ids, next_id = {}, entries_from(name, after)
    local id = next_id()
    if id == after then id = next_id() end
    while id and #ids < number do
        ids[#ids + 1], id = id, next_id()
    end
    return {ids, id and ids[#ids] or ''}
end

local found = {}
for at = 3, #ARGV do found[at - 2] = ids_of(ARGV[at]) end
return found
