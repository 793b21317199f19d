#!lua flags=no-writes
-- Names of the lists with all jobs of a kind of a tenant. ARGV: the name after which to begin or '', how many.
local found, from = {}, ARGV[1] == '' and '-' or '(' .. ARGV[1] .. '\255\255\255'
for at = 1, tonumber(ARGV[2]) do
    local chunk = call('ZRANGE', LISTS, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
    if not chunk then break end
    local name = string.sub(chunk, 1, 3 + unpack_struct('>I2', chunk, 2))
    found[at], from = name, '(' .. name .. '\255\255\255' -- lists of schedules are in between
end
return found
