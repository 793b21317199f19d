-- The keys of a store. All begin with P, "{prefix}:", a hash tag: they are in one slot of a Redis Cluster.
-- scripts.py makes one function of the lines `local NAME = P .. 'name'`, which sets them for the store of a call.
--
-- Names inside keys and fields are joined by a zero byte, which no name contains:
--   lane    queue \0 priority \0 tenant
--   index   lane \0 (0 or 1: its jobs need a permit) target
-- Ids of jobs and schedules are 16 bytes. Instants are microseconds.

-- Jobs -------------------------------------------------------------------------------------------------
local JOBS = P .. 'jobs'                -- hash: id -> row of a live job (rows.lua)
local RUNNING = P .. 'running'          -- hash: id -> record of a running job: attempt, node, claimed_at, permit
local PAST = P .. 'past'                -- hash: id -> row of a finished job
local ERRORS = P .. 'errors'            -- hash: id -> error of a live job
local CHECKPOINTS = P .. 'checkpoints'  -- hash: id -> checkpoint, of live and past jobs
local PROGRESS = P .. 'progress'        -- hash: id -> progress, of live and past jobs
local UNIQUE = P .. 'unique'            -- hash: tenant \0 unique key -> id of the live job that holds it
local ANNOUNCED = P .. 'announced'      -- set: ids of live jobs whose end a caller waits for
local CANCELS = P .. 'cancels'          -- hash: id -> node, of running jobs that were asked to stop
local EXTERNAL = P .. 'external'        -- sorted set: id by deadline, of external jobs
local LISTS = P .. 'lists'              -- sorted set, all scores 0: every job by its fire time (lists.lua)
local function finished_key(target) return P .. 'finished:' .. target end       -- list: ids, in the order they finished
local TARGETS = P .. 'targets'          -- set: targets that have a list of finished jobs
local function attempts_key(id) return P .. 'attempts:' .. id end               -- list: attempts that did not succeed
local function markers_key(id) return P .. 'markers:' .. id end                 -- hash: once-marker -> nonce
local function keyed_key(name) return P .. 'keyed:' .. name end                 -- sorted set: id by created_at, live and past, of a tenant \0 unique key

-- Lanes, permits and limits ----------------------------------------------------------------------------
local LANES = P .. 'lanes'              -- sorted set, all scores 0: lanes that may have claimable jobs
local function lane_key(lane) return P .. 'lane:' .. lane end                   -- set: 0|1 .. target, the indexes of a lane that may have jobs
local function index_key(lane, part) return P .. 'due:' .. lane .. '\0' .. part end  -- sorted set: id by due_at, claimable jobs
local LIVE = P .. 'live'                -- hash: lane -> number of its live jobs
local BUSY = P .. 'busy'                -- hash: lane -> number of its running jobs, external ones too
local USED = P .. 'used'                -- set: queue \0 tenant, under which a job was ever stored
local QUEUES = P .. 'queues'            -- hash: queue -> its settings, as JSON
local RESTRICTED = P .. 'restricted'    -- hash: queue -> paused, max_running, rate: only of queues with such a setting
local QUEUE_SPENT = P .. 'queue_spent'  -- hash: queue -> until when the starts under its rate are paid for
local LIMITS = P .. 'limits'            -- hash: target -> max_running, rate (LIMIT format), written by join
local KEY_USE = P .. 'key_use'          -- hash: limit key -> spent_until, asks_at, served_at
local function permits_key(limit_key) return P .. 'permits:' .. limit_key end   -- hash: permit -> number of running jobs under it
local function waiting_key(name) return P .. 'waiting:' .. name end             -- sorted set, all scores 0: 9 - priority, due_at, id
local WAITED = P .. 'waited'            -- sorted set, all scores 0: permits that jobs may wait for

-- Schedules --------------------------------------------------------------------------------------------
local SCHEDULES = P .. 'schedules'      -- hash: id -> row
local SCHEDULE_NAMES = P .. 'schedule_names'  -- sorted set, all scores 0: tenant \0 name \0 id
local function cursors_key(segment) return P .. 'cursors:' .. segment end       -- sorted set: id by next_fire_time, unless paused
local VERSIONS = P .. 'versions'        -- sorted set, all scores 0: tenant \0 name \0, row of a version
local REMOVED = P .. 'removed'          -- sorted set: tenant \0 name \0 id of a removed schedule, by the instant of its oldest version
local function started_key(schedule_id) return P .. 'started:' .. schedule_id end      -- set: ids, live jobs with an attempt

-- Nodes -----------------------------------------------------------------------------------------------
local NODE_NUMBER = P .. 'node_number'  -- counter: the last node id given
local NODES = P .. 'nodes'              -- hash: node -> row
local ALIVE = P .. 'alive'              -- sorted set: node by the end of its lease, nodes that are not dead
local WORKERS = P .. 'workers'          -- set: nodes that are not dead and have the role of a worker
local DEAD = P .. 'dead'                -- set: dead nodes that may still have running jobs
local NODE_RUNNING = P .. 'node_running'  -- hash: node -> number of jobs it runs
local OFFERS = P .. 'offers'            -- sorted set: node by the end of its offer of a slot, workers without jobs
local OFFERED = P .. 'offered'          -- hash: node -> what it accepts: >I4+text lanes, text targets
local ASSIGNED = P .. 'assigned'        -- hash: node -> id of the job last assigned to it, until the node says that it came in

-- Records, events, the store itself --------------------------------------------------------------------
local RECORDS = P .. 'records'          -- hash: kind \0 tenant \0 key -> row
local RECORD_NAMES = P .. 'record_names'  -- sorted set, all scores 0: kind \0 tenant \0 key
local RECORD_EXPIRY = P .. 'record_expiry'  -- sorted set: kind \0 tenant \0 key by expires_at
local RECORD_VERSION = P .. 'record_version'  -- counter: the highest version ever given
local EVENTS = P .. 'events'            -- list: >i8 when, event; the last has the number EVENT_NUMBER
local EVENT_NUMBER = P .. 'event_number'  -- counter: the id of the newest event
local VERSION = P .. 'version'          -- the version of this layout
local CHANNEL = P .. 'hints'            -- pub/sub: hints as text; with : node, jobs assigned to that node, id and row

local MANY = 1000                       -- arguments for `unpack` are limited by Lua's stack

local function now_micros()
    local t = call('TIME')
    return t[1] * 1000000 + t[2]
end

-- Numbers beyond 14 digits: Lua would write 1.7e+15. Numbers as arguments of `call` cost more than texts
local function text(number) return string.format('%.0f', number) end
