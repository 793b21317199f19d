#!lua flags=no-writes
-- ARGV: until, limit, segments. Returns ids and rows, oldest cursor first.
local due, found = {}, {}
for at = 3, #ARGV do
    local some = call('ZRANGE', cursors_key(ARGV[at]), '-inf', ARGV[1], 'BYSCORE', 'LIMIT', 0, ARGV[2], 'WITHSCORES')
    for place = 1, #some, 2 do due[#due + 1] = {tonumber(some[place + 1]), some[place]} end
end
table.sort(due, function(one, other) return one[1] < other[1] end)
for place = 1, math.min(#due, tonumber(ARGV[2])) do
    found[2 * place - 1], found[2 * place] = due[place][2], call('HGET', SCHEDULES, due[place][2])
end
return found
