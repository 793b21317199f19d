#!lua flags=allow-oom
-- Write decisions about running jobs. ARGV: of the successors node, room, number of queues, queues, number of
-- targets, targets; number of packs, packs; then of each other settlement: id, attempt (>I4), end as in a past row,
-- rest.
-- Pack: settlements with the same result, without error and rest: the end of their ends, from the result on; then of
-- each id (16 bytes), attempt (>I4), beginning of the end (26 bytes), one after the other.
-- Rest: '' for a final state that leaves no attempt and wants one successor. Otherwise >i8 due_at, I2 wanted,
-- I4+attempt row without its node (empty: leaves none), error as in a past row.
-- Returns refused ids, successors (id, row, checkpoint, permit), lanes with claimable jobs, lanes and due_at of
-- jobs that are pending again.
local now = now_micros()
local refused, successors, lanes, again = {}, {}, {}, {}
local any_restricted = call('HLEN', RESTRICTED) > 0
local any_errors = call('EXISTS', ERRORS) == 1
local any_announced = call('SCARD', ANNOUNCED) > 0
local node, room, at = ARGV[1], tonumber(ARGV[2]), 3
local function read_names()
    local names, number = {}, tonumber(ARGV[at])
    for i = at + 1, at + number do names[ARGV[i]] = true end
    at = at + number + 1
    return names
end
local queues, targets = read_names(), read_names()
if room > 0 and not may_claim(node, now) then room = 0 end

local function limit_of(target)
    local row = call('HGET', LIMITS, target)
    if not row then return 0, 0 end
    return unpack_struct('>I4I4', row)
end

-- Whether the settling node runs it: it can, and the job needs no other permit, queue or rate
local function takes(job, name)
    local queue = split_lane(job.lane)
    local _, rate = limit_of(job.target)
    local alone = not has(job.flags, LIMITED)
    if has(job.flags, LIMITED) and job.limit_key == name then alone = not has(job.flags, OVERLAPS) end
    return #successors < room and queues[queue] and targets[job.target] and rate == 0 and alone
        and not (any_restricted and call('HEXISTS', RESTRICTED, queue) == 1)
end

local function pass_on(name, permit, number)
    for _ = 1, number do
        local member = call('ZRANGE', waiting_key(name), 0, 0)[1]
        if not member then return end
        local id = string.sub(member, 10)
        local row = call('HGET', JOBS, id)
        local job = read_row(row)
        call('ZREM', waiting_key(name), member)
        if takes(job, name) then
            successors[#successors + 1] = start_job(id, row, job, node, now, permit)
        else
            push(id, job)
            lanes[#lanes + 1] = job.lane
        end
    end
end

local function pass_permits(job, permit, number, is_final)
    if has(job.flags, LIMITED) then
        local max_running = limit_of(job.target)
        local permits = permits_key(job.limit_key)
        if max_running > 0 and (call('HEXISTS', permits, permit) == 1 or call('HLEN', permits) < max_running) then
            pass_on(job.limit_key, permit, number)
        end
    end
    if is_final and #job.schedule_id > 0 and call('SCARD', started_key(job.schedule_id)) == 0 then
        pass_on(schedule_permit(job.schedule_id), '', 1)
    end
end

-- The same decision again, after its reply was lost
local function was_written(id, attempt, state, due_at)
    local row = call('HGET', JOBS, id)
    if row then
        return state == PENDING and call('HEXISTS', RUNNING, id) == 0 and unpack_struct('>I4', row) == attempt
            and unpack_struct('>i8', row, 22) == due_at
    end
    local past = call('HGET', PAST, id)
    return past and string.byte(past) == state and unpack_struct('>I4', past, run_place(past)) == attempt
end

-- Failures and losses in the end of a settlement
local function counts_in(finish) return string.sub(finish, 19, 26) end

local function send_back(id, row, job, run, finish, due_at, error)
    local kept = has(job.flags, CANCEL) and call('HEXISTS', ERRORS, id) == 1
    if error ~= '' and not kept then call('HSET', ERRORS, id, string.sub(error, 2)) end
    job.flags = has(job.flags, BEGUN) and job.flags - BEGUN or job.flags
    row = with_flags(string.sub(run, 1, 4) .. counts_in(finish) .. string.sub(row, 13), job.flags)
    job.due_at = due_at
    call('HSET', JOBS, id, with_due(row, due_at))
    push(id, job)
    again[#again + 1] = {job.lane, text(due_at)}
end

local function make_external(id, row, run, finish, due_at)
    local attempt, node, claimed_at = unpack_struct(RUN, run)
    if node == 0 then return end -- repeated, it moves no deadline
    local flags = string.byte(row, 21)
    row = with_flags(row, has(flags, BEGUN) and flags - BEGUN or flags)
    call('HINCRBY', NODE_RUNNING, node, -1)
    call('HDEL', CANCELS, id)
    call('HSET', RUNNING, id, pack(RUN, attempt, 0, claimed_at) .. string.sub(run, 17))
    call('HSET', JOBS, id, with_due(string.sub(row, 1, 4) .. counts_in(finish) .. string.sub(row, 13), due_at))
    call('ZADD', EXTERNAL, due_at, id)
end

-- A job that was asked to stop keeps the reason that the caller gave
local function with_reason(finish, reason)
    return string.sub(finish, 1, 30 + unpack_struct('>I4', finish, 27)) .. pack('>I4', #reason + 1) .. '\1' .. reason
end

-- Any settlement but the plain ones
local function write(id, row, run, finish, due_at, wanted, attempt_row, error)
    local state = string.byte(finish)
    if state == RUNS then return make_external(id, row, run, finish, due_at) end
    local job = read_row(row)
    local permit = stop_job(id, job, run)
    job.attempt = unpack_struct('>I4', run)
    if attempt_row ~= '' then call('RPUSH', attempts_key(id), string.sub(run, 5, 8) .. attempt_row) end
    if state == PENDING then
        send_back(id, row, job, run, finish, due_at, error)
    else
        local reason = state == CANCELLED and has(job.flags, CANCEL) and call('HGET', ERRORS, id)
        remove_live(id, job)
        keep_past(id, job, (reason and with_reason(finish, reason) or finish) .. string.sub(run, 1, 16) .. row)
    end
    if any_announced and state ~= PENDING then tell_end(id) end
    if any_restricted and call('HEXISTS', RESTRICTED, (split_lane(job.lane))) == 1 then lanes[#lanes + 1] = job.lane end
    pass_permits(job, permit, wanted, state ~= PENDING)
end

local function write_other(id, attempt, finish, rest)
    local due_at, wanted, attempt_row, error = 0, 1, '', ''
    attempt = unpack_struct('>I4', attempt)
    if rest ~= '' then
        due_at, wanted, attempt_row = unpack_struct('>i8I2I4c0', rest)
        error = string.sub(rest, 15 + #attempt_row)
    end
    local run = call('HGET', RUNNING, id)
    if run and unpack_struct('>I4', run) == attempt then
        write(id, call('HGET', JOBS, id), run, finish, due_at, wanted, attempt_row, error)
    elseif not was_written(id, attempt, string.byte(finish), due_at) then
        refused[#refused + 1] = id
    end
end

-- Plain settlements: of jobs without permit, schedule, unique key and cancellation that become final without an
-- attempt worth a row. Nearly all are, and each string that Lua makes costs: those of one claim, lane, target and
-- state are a group.
local function new_group(run, state, lane, target)
    local _, node = unpack_struct(RUN, run)
    return {run = run, attempt = string.sub(run, 1, 4), node = node, state = state, lane = lane, target = target,
        size = 0, ids = {}}
end

local function group_of(groups, run, row, state)
    local lane, target, after = unpack_struct('>I2c0I2c0', row, LANE_AT)
    local key = state .. run .. lane .. '\0' .. target
    local group = groups[key]
    if not group then
        group = new_group(run, state, lane, target)
        group.last, group.names = after - 1, string.sub(row, LANE_AT, after - 1)
        groups[key] = group
    end
    return group
end

local moves = {} -- by state and tenant: ids that leave the list of live jobs for another

local function move_ids(group)
    local tenant = string.match(group.lane, '([^%z]*)$')
    local key = group.state .. tenant
    if not moves[key] then
        local from, to = list_name(LISTED_LIVE, tenant, ''), list_name(LISTED_PAST[group.state], tenant, '')
        moves[key] = {from = from, to = to, ids = group.ids}
        return
    end
    local ids = moves[key].ids
    local before = #ids
    for at = 1, group.size do ids[before + at] = group.ids[at] end
end

local function write_group(group)
    local ids, lane = group.ids, group.lane
    call('HDEL', JOBS, unpack(ids))
    call('HDEL', RUNNING, unpack(ids))
    if any_errors then call('HDEL', ERRORS, unpack(ids)) end
    call('RPUSH', finished_key(group.target), unpack(ids))
    call('SADD', TARGETS, group.target)
    call('HINCRBY', LIVE, lane, -#ids)
    call('HINCRBY', BUSY, lane, -#ids)
    if group.node > 0 then
        call('HINCRBY', NODE_RUNNING, group.node, -#ids)
    else
        call('ZREM', EXTERNAL, unpack(ids))
    end
    move_ids(group)
    if any_restricted and call('HEXISTS', RESTRICTED, (split_lane(lane))) == 1 then lanes[#lanes + 1] = lane end
    if any_announced then
        for _, id in ipairs(ids) do tell_end(id) end
    end
end

-- Up to MANY settlements. An end has two parts: `heads` and `tails`
local function settle_some(ids, attempts, heads, tails, rests)
    local runs, rows = call('HMGET', RUNNING, unpack(ids)), call('HMGET', JOBS, unpack(ids))
    local groups, group, past, size, seen, others = {}, {}, {}, 0, {}, {}
    for i = 1, #ids do
        local id, head, run, row = ids[i], heads[i], runs[i], rows[i]
        local state, flags, is_plain = string.byte(head), row and string.byte(row, 21), false
        if run and (flags == 0 or flags == BEGUN) and state > RUNS and rests[i] == '' and not seen[id] then
            if run ~= group.run or state ~= group.state or string.sub(row, LANE_AT, group.last) ~= group.names then
                group = group_of(groups, run, row, state)
            end
            is_plain = group.attempt == attempts[i]
        end
        if is_plain then
            local place = group.size + 1
            group.size, group.ids[place] = place, id
            past[size + 1], past[size + 2] = id, head .. tails[i] .. run .. row
            size, seen[id] = size + 2, true
        else
            others[#others + 1] = i
        end
    end
    if size > 0 then call('HSET', PAST, unpack(past)) end
    for _, written in pairs(groups) do
        if written.size > 0 then write_group(written) end
    end
    for _, i in ipairs(others) do write_other(ids[i], attempts[i], heads[i] .. tails[i], rests[i]) end
end

local ids, attempts, heads, tails, rests, size = {}, {}, {}, {}, {}, 0
local function next_place()
    if size == MANY then
        settle_some(ids, attempts, heads, tails, rests)
        ids, attempts, heads, tails, rests, size = {}, {}, {}, {}, {}, 0
    end
    size = size + 1
    return size
end

local first_pack = at + 1
at = first_pack + 2 * tonumber(ARGV[at])
for pack_at = first_pack, at - 1, 2 do
    local tail, packed = ARGV[pack_at], ARGV[pack_at + 1]
    for from = 1, #packed, 46 do
        local i = next_place()
        ids[i], attempts[i] = string.sub(packed, from, from + 15), string.sub(packed, from + 16, from + 19)
        heads[i], tails[i], rests[i] = string.sub(packed, from + 20, from + 45), tail, ''
    end
end
for from = at, #ARGV, 4 do
    local i = next_place()
    ids[i], attempts[i], heads[i], tails[i], rests[i] = ARGV[from], ARGV[from + 1], ARGV[from + 2], '', ARGV[from + 3]
end
settle_some(ids, attempts, heads, tails, rests)
for _, move in pairs(moves) do move_between_lists(move.from, move.to, move.ids) end
return {refused, successors, lanes, again}
