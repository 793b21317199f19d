#!lua flags=allow-oom
-- Running jobs. ARGV: which (node, dead, deadline), limit, node. Returns id, row, record, checkpoint of each.
local which, limit = ARGV[1], tonumber(ARGV[2])
local found = {}

local function add(id, run)
    found[#found + 1] = {id, call('HGET', JOBS, id), run, call('HGET', CHECKPOINTS, id)}
end

-- Jobs of these nodes; returns the nodes that have none
local function of_nodes(nodes)
    local all = call('HGETALL', RUNNING)
    for i = 1, #all, 2 do
        local _, node = unpack_struct(RUN, all[i + 1])
        if nodes[node] ~= nil then
            nodes[node] = true
            if #found < limit then add(all[i], all[i + 1]) end
        end
    end
    return nodes
end

if which == 'node' then
    of_nodes({[tonumber(ARGV[3])] = false})
elseif which == 'deadline' then
    for _, id in ipairs(call('ZRANGE', EXTERNAL, '-inf', now_micros(), 'BYSCORE', 'LIMIT', 0, limit)) do
        add(id, call('HGET', RUNNING, id))
    end
elseif call('SCARD', DEAD) > 0 then
    local dead = {}
    for _, node in ipairs(call('SMEMBERS', DEAD)) do dead[tonumber(node)] = false end
    for node, has_jobs in pairs(of_nodes(dead)) do
        if not has_jobs then call('SREM', DEAD, node) end
    end
end
return found
