#!lua flags=no-writes
-- Returns name, lease, row of the holder and end of its lease (of the living) of each.
local leases, found = call('HGETALL', LEASES), {}
for at = 1, #leases, 2 do
    local _, holder = read_lease(leases[at + 1])
    found[#found + 1] = {leases[at], leases[at + 1], call('HGET', NODES, holder), call('ZSCORE', ALIVE, holder)}
end
return found
