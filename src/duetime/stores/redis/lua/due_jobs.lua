#!lua flags=allow-oom
-- Jobs for a dispatcher. ARGV: prefetch, room, segments (64 characters 0 or 1), lanes (name, queue, low).
-- Returns the end of the prefetch, and of each lane, first without permits, then with: jobs (id, due_at, attempt) of these
-- segments, by due_at, at most room + 1, ending with the first that is not due yet.
local until_, room = now_micros() + tonumber(ARGV[1]), tonumber(ARGV[2])
local PAGE = 200

local function wanted(id) return string.byte(ARGV[3], string.byte(id, -1) % 64 + 1) == 49 end

local function scan(index, low, found)
    local number, offset = 0, 0
    repeat
        local some = call('ZRANGE', index, low, '+inf', 'BYSCORE', 'LIMIT', offset, PAGE, 'WITHSCORES')
        for i = 1, #some, 2 do
            if wanted(some[i]) then
                number = number + 1
                found[#found + 1] = {some[i], some[i + 1]}
                if number > room or tonumber(some[i + 1]) > until_ then return end
            end
        end
        offset = offset + PAGE
    until #some == 0
end

local lanes = {}
for i = 4, #ARGV, 3 do
    local lane, queue, low = ARGV[i], ARGV[i + 1], ARGV[i + 2]
    local row = call('HGET', RESTRICTED, queue)
    local kinds = {{}, {}}
    if not (row and string.byte(row) == 1) then
        for _, part in ipairs(call('SMEMBERS', lane_key(lane))) do
            local bound = string.byte(part) == 49
            scan(index_key(lane, part), bound and '-inf' or low, kinds[bound and 2 or 1])
        end
    end
    for _, found in ipairs(kinds) do
        table.sort(found, function(a, b) return tonumber(a[2]) < tonumber(b[2]) end)
        for n = #found, room + 2, -1 do found[n] = nil end
        for _, job in ipairs(found) do job[3] = unpack_struct('>I4', call('HGET', JOBS, job[1])) end
        for _, job in ipairs(found) do job[2] = text(tonumber(job[2])) end
    end
    lanes[#lanes + 1] = kinds
end
return {text(until_), lanes}
