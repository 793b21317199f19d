#!lua flags=no-writes
-- ARGV: whether only living nodes (0 or 1). Returns node, row, end of the lease (of the living) and number of running jobs of each.
local known = ARGV[1] == '1' and call('ZRANGE', ALIVE, 0, -1) or call('HKEYS', NODES)
local found = {}
for _, node in ipairs(known) do
    found[#found + 1] = {node, call('HGET', NODES, node), call('ZSCORE', ALIVE, node), call('HGET', NODE_RUNNING, node)}
end
return found
