#!lua flags=allow-oom
-- ARGV: node, then the names of the leases it wants. Returns those it holds. A lease is 'token:holder'; the token rises with each holder.
local node, wanted, held = ARGV[1], {}, {}
if not call('ZSCORE', ALIVE, node) then return held end
for at = 2, #ARGV do wanted[ARGV[at]] = true end
local leases = call('HGETALL', LEASES)
for at = 1, #leases, 2 do
    local token, holder = read_lease(leases[at + 1])
    if holder == node and not wanted[leases[at]] then call('HSET', LEASES, leases[at], token .. ':') end
end
for at = 2, #ARGV do
    local token, holder = read_lease(call('HGET', LEASES, ARGV[at]) or '0:')
    if holder == '' or not call('ZSCORE', ALIVE, holder) then
        call('HSET', LEASES, ARGV[at], token + 1 .. ':' .. node)
        holder = node
    end
    if holder == node then held[#held + 1] = ARGV[at] end
end
return held
