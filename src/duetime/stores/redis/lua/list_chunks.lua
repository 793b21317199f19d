#!lua flags=no-writes
-- ARGV: number of chunks, entry below which to begin, names of lists. Returns of each list up to so many chunks, the latest first.
local found = {}
for at = 3, #ARGV do
    found[at - 2] = call('ZRANGE', LISTS, '(' .. ARGV[at] .. ARGV[2], '[' .. ARGV[at], 'BYLEX', 'REV', 'LIMIT', 0, ARGV[1])
end
return found
