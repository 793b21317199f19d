#!lua flags=no-writes
-- ARGV: bounds of the names, limit. Returns names and rows.
local from, till, limit, now = ARGV[1], ARGV[2], tonumber(ARGV[3]), now_micros()
local found = {}
while #found < 2 * limit do
    local names = call('ZRANGE', RECORD_NAMES, from, till, 'BYLEX', 'LIMIT', 0, math.min(limit, MANY))
    if #names == 0 then break end
    for at, row in ipairs(call('HMGET', RECORDS, unpack(names))) do
        if #found < 2 * limit and is_current(row, now) then
            found[#found + 1] = names[at]
            found[#found + 1] = row
        end
    end
    from = '(' .. names[#names]
end
return found
