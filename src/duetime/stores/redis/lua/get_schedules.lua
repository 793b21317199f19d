#!lua flags=no-writes
-- ARGV: 'ids' and ids, or 'names', first and last name, and limit: names are tenant \0 name \0 id. Returns ids and rows.
local ids = {}
if ARGV[1] == 'ids' then
    for at = 2, #ARGV do ids[at - 1] = ARGV[at] end
else
    for at, name in ipairs(call('ZRANGE', SCHEDULE_NAMES, ARGV[2], ARGV[3], 'BYLEX', 'LIMIT', 0, ARGV[4])) do
        ids[at] = string.sub(name, -16)
    end
end
local found = {}
for _, id in ipairs(ids) do
    local row = call('HGET', SCHEDULES, id)
    if row then
        found[#found + 1] = id
        found[#found + 1] = row
    end
end
return found
