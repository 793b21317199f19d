-- Lists of jobs by fire time, all of them in the one sorted set LISTS.
--
-- A list has the jobs of one kind of one tenant, or of one of its schedules. A member of the set is a chunk of a list: the name of the list,
-- the lower bound of the chunk, and up to MAX_ENTRIES entries in any order. A chunk has the entries from its bound up to the bound of the
-- next chunk. A member for each job would need five times the memory.
-- An entry is the id of a job. Ids sort by fire time. lists.py reads them.
-- Only Redis and numbers compare entries: Lua's own comparison of texts depends on the locale of the server.
local MAX_ENTRIES, WIDTH, NUMBERS = 24, 16, '>I6I5I5'
local FIRST_BOUND = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' -- WIDTH zero bytes
local LISTED_LIVE, LISTED_RESOLVED = 'L', 'R'                   -- resolved: dead letters that were retried or discarded
local LISTED_PAST = {[3] = 'S', [4] = 'D', [5] = 'C', [6] = 'K'} -- by state

-- Names delimit themselves: none is the beginning of another
local function list_name(kind, tenant, schedule)
    local name = kind .. pack('>I2', #tenant) .. tenant
    return schedule == '' and name or name .. '\255\255' .. pack('>I2', #schedule) .. schedule
end

local function is_before(a, b, c, x, y, z) return a < x or a == x and (b < y or b == y and c < z) end

local function in_order(entries)
    local a, b, c = 0, 0, 0
    for at = 1, #entries do
        local x, y, z = unpack_struct(NUMBERS, entries[at])
        if is_before(x, y, z, a, b, c) then
            local keys = {}
            for place, entry in ipairs(entries) do keys[place] = {entry, unpack_struct(NUMBERS, entry)} end
            table.sort(keys, function(one, other)
                return is_before(one[2], one[3], one[4], other[2], other[3], other[4])
            end)
            for place, key in ipairs(keys) do entries[place] = key[1] end
            return entries
        end
        a, b, c = x, y, z
    end
    return entries
end

-- The last place, from `first` on, whose entry is below the bound of this chunk; first - 1 if there is none
local function last_below(entries, first, chunk, name)
    local a, b, c = unpack_struct(NUMBERS, chunk, #name + 1)
    local low, high = first - 1, #entries
    while low < high do
        local middle = math.ceil((low + high) / 2)
        local x, y, z = unpack_struct(NUMBERS, entries[middle])
        if is_before(x, y, z, a, b, c) then low = middle else high = middle - 1 end
    end
    return low
end

-- Calls `change` with each chunk (nil: there is none yet), its bound, and the first and last place of the entries in its range. Entries are
-- in order
local function for_each_chunk(name, entries, change)
    local at, first, last = 1, '[' .. name, '[' .. name .. '\255'
    while at <= #entries do
        local chunk = call('ZRANGE', LISTS, '[' .. name .. entries[at] .. '\255', first, 'BYLEX', 'REV', 'LIMIT', '0', '1')[1]
        local number = math.ceil((#entries - at) / MAX_ENTRIES)
        local following = {}
        if number > 0 then following = call('ZRANGE', LISTS, '(' .. (chunk or name), last, 'BYLEX', 'LIMIT', '0', number) end
        for place = 1, number + 1 do
            local above = following[place]
            if not above and place > number and number > 0 then break end -- what follows is not known
            local till = above and last_below(entries, at, above, name) or #entries
            if till >= at then
                local bound = chunk and string.sub(chunk, #name + 1, #name + WIDTH) or FIRST_BOUND
                change(chunk, bound, at, till)
            elseif place > 1 then
                break -- the next entry is further away
            end
            at, chunk = till + 1, above
            if not above or at > #entries then break end
        end
    end
end

local function add_to_list(name, entries)
    for_each_chunk(name, entries, function(chunk, bound, first, last)
        local added, size = entries, MAX_ENTRIES
        if chunk then
            local is_full = (#chunk - #name) / WIDTH - 1 + last - first + 1 > MAX_ENTRIES
            -- New jobs are mostly the last: chunks are left full there, and with room elsewhere
            local next = is_full and call('ZRANGE', LISTS, '(' .. chunk, '[' .. name .. '\255', 'BYLEX', 'LIMIT', '0', '1')[1]
            call('ZREM', LISTS, chunk)
            if not is_full then
                call('ZADD', LISTS, '0', chunk .. table.concat(entries, '', first, last))
                return
            end
            local all, number = {}, 0
            for at = #name + WIDTH + 1, #chunk, WIDTH do
                number = number + 1
                all[number] = string.sub(chunk, at, at + WIDTH - 1)
            end
            for at = first, last do all[number + 1 + at - first] = entries[at] end
            added, first, last, size = in_order(all), 1, number + 1 + last - first, next and MAX_ENTRIES / 2 or MAX_ENTRIES
        end
        local chunks = {}
        for at = first, last, size do
            local part = table.concat(added, '', at, math.min(at + size - 1, last))
            chunks[#chunks + 1] = '0'
            chunks[#chunks + 1] = name .. (at == first and bound or added[at]) .. part
        end
        for at = 1, #chunks, MANY do call('ZADD', LISTS, unpack(chunks, at, math.min(at + MANY - 1, #chunks))) end
    end)
end

local function remove_from_list(name, entries)
    for_each_chunk(name, entries, function(chunk, bound, first, last)
        if not chunk then return end
        local held = string.sub(chunk, #name + WIDTH + 1)
        if held == table.concat(entries, '', first, last) then
            held = ''
        else
            for place = first, last do
                local entry = entries[place]
                local at = string.find(held, entry, 1, true)
                while at and (at - 1) % WIDTH ~= 0 do at = string.find(held, entry, at + 1, true) end
                if at then held = string.sub(held, 1, at - 1) .. string.sub(held, at + WIDTH) end
            end
        end
        call('ZREM', LISTS, chunk)
        if #held > 0 then call('ZADD', LISTS, '0', name .. bound .. held) end
    end)
end

-- What a script changes is collected and written at its end: many jobs of a batch are in the same chunks
local listed, unlisted = {}, {}

local function changes_of(changes, name)
    if not changes[name] then changes[name] = {} end
    return changes[name]
end

local function change_lists(changes, kind, id, job)
    local tenant = string.match(job.lane, '([^%z]*)$')
    table.insert(changes_of(changes, list_name(kind, tenant, '')), id)
    if job.schedule ~= '' then table.insert(changes_of(changes, list_name(kind, tenant, job.schedule)), id) end
end

-- Entries that leave one list for another
local function move_between_lists(from, to, entries)
    in_order(entries)
    remove_from_list(from, entries)
    add_to_list(to, entries)
end

local function write_lists()
    for name, entries in pairs(listed) do add_to_list(name, in_order(entries)) end
    for name, entries in pairs(unlisted) do remove_from_list(name, in_order(entries)) end
end
