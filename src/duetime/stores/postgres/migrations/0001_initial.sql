-- The whole schema.
--
-- Tables: `jobs` has every job that is pending or running; finished jobs move to `history`, which has one partition a day, and so has
-- `attempts`. `limits` has the limits of tasks, `limit_keys` one row per name that claims lock. The rest is what its name says.
--
-- Permits. A job with a limit key needs a permit of the key, a job with an overlap policy needs the permit of its schedule. A running job is
-- the permit: running jobs with the same `permit` run one after the other and count once. A due job without a permit has the name it waits for
-- in `waits_for` (a limit key, or '/' and the id of a schedule) and is not in the indexes that claims read. A settlement passes the permit
-- on to the best waiting job in the same transaction.
--
-- Locking order. A claim locks queues with limits, by name; candidates, with SKIP LOCKED; missing rows of `limit_keys` are inserted, by
-- name; then it locks rows of `limit_keys`, by name. A settlement locks its own running jobs, by id, then waiting jobs with SKIP LOCKED, then
-- rows of `limit_keys`, by name. A transaction that holds a row of `limit_keys` waits for no job. An edit of a schedule locks the
-- schedule, by id, before its jobs.
--
-- No partial index on `jobs` may have a predicate that the conditions of a settlement (id, attempt, state = 'running') imply: the planner
-- would walk that index instead of the primary key.

CREATE TABLE duetime.jobs (
    -- the columns of a draft, in its order
    id uuid PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    schedule_id uuid,
    schedule text COLLATE "C",
    fire_time timestamptz NOT NULL,
    due_at timestamptz NOT NULL, -- of an external job: the deadline of its report
    queue text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    overlap text,
    target text COLLATE "C" NOT NULL,
    target_spec bytea,
    payload bytea NOT NULL,
    policies bytea,
    owner text COLLATE "C",
    labels bytea,
    unique_key text COLLATE "C",
    retry_of uuid,
    limit_key text COLLATE "C",
    -- what happens to it
    state text COLLATE "C" NOT NULL DEFAULT 'pending',
    attempt bigint NOT NULL DEFAULT 0,
    failures bigint NOT NULL DEFAULT 0,
    losses bigint NOT NULL DEFAULT 0,
    node bigint, -- 0 for an external job, which no node runs
    cancel_requested boolean NOT NULL DEFAULT false,
    checkpoint bytea,
    progress bytea,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    claimed_at timestamptz,
    error text
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

CREATE TABLE duetime.history (
    LIKE duetime.jobs INCLUDING DEFAULTS,
    started_at timestamptz,
    finished_at timestamptz NOT NULL,
    result bytea,
    disposition text
) PARTITION BY RANGE (finished_at);

-- Only live jobs have these.
ALTER TABLE duetime.jobs
    ADD COLUMN begun boolean NOT NULL DEFAULT false, -- a job lost before: its worker has recorded that it starts
    ADD COLUMN awaited boolean NOT NULL DEFAULT false, -- a caller waits for its end
    ADD COLUMN waits_for text COLLATE "C", -- the name of the permit that it waits for
    ADD COLUMN permit uuid; -- of a running job with a limit key; random, because a retry must not get the permit of its successor

-- The conditions that tell kinds of jobs apart come first: every write evaluates the predicates.
CREATE INDEX jobs_due ON duetime.jobs (queue, priority, tenant, due_at) WHERE state = 'pending' AND overlap IS NULL AND limit_key IS NULL;
-- Without deduplication: of several entries in one list all would have to be dead before a scan can mark them as dead, and jobs that are
-- stored together are due at the same instant.
CREATE INDEX jobs_needing_permit ON duetime.jobs (queue, priority, tenant, due_at) WITH (deduplicate_items = off)
    WHERE (limit_key IS NOT NULL OR overlap IS NOT NULL) AND waits_for IS NULL AND state = 'pending';
CREATE INDEX jobs_waiting ON duetime.jobs (waits_for, priority DESC, due_at) WITH (deduplicate_items = off) WHERE waits_for IS NOT NULL;
CREATE INDEX jobs_limit_key ON duetime.jobs (limit_key) WHERE limit_key IS NOT NULL AND state = 'running';
-- One job at a time of a schedule with an overlap policy: a second line of defence behind the locks of `limit_keys`.
CREATE UNIQUE INDEX jobs_started ON duetime.jobs (schedule_id) WHERE overlap IS NOT NULL AND attempt > 0;
CREATE INDEX jobs_schedule ON duetime.jobs (schedule_id, attempt, fire_time) WHERE schedule_id IS NOT NULL;
CREATE INDEX jobs_schedule_name ON duetime.jobs (schedule, id) WHERE schedule IS NOT NULL;
CREATE INDEX jobs_owner ON duetime.jobs (owner, id) WHERE owner IS NOT NULL;
-- By queue as well, to count the running jobs of a queue with limits.
CREATE INDEX jobs_node ON duetime.jobs (node, queue) WHERE node IS NOT NULL;
CREATE INDEX jobs_cancel ON duetime.jobs (node) WHERE cancel_requested;
CREATE UNIQUE INDEX jobs_unique_key ON duetime.jobs (tenant, unique_key) WHERE unique_key IS NOT NULL;
-- With "node = 0" the planner might choose jobs_node: statements about deadlines repeat this predicate.
CREATE INDEX jobs_external ON duetime.jobs (due_at) WHERE coalesce(node, 1) = 0;

-- No unique key: the delete from `jobs` in the same statement makes a completion single.
CREATE INDEX history_id ON duetime.history (id);
CREATE INDEX history_dead ON duetime.history (id) WHERE state = 'dead';
CREATE INDEX history_schedule_name ON duetime.history (schedule, id) WHERE schedule IS NOT NULL;
CREATE INDEX history_owner ON duetime.history (owner, id) WHERE owner IS NOT NULL;
CREATE INDEX history_unique_key ON duetime.history (tenant, unique_key) WHERE unique_key IS NOT NULL;
CREATE TABLE duetime.history_other PARTITION OF duetime.history DEFAULT;

CREATE TABLE duetime.attempts (
    job_id uuid NOT NULL,
    attempt bigint NOT NULL,
    node bigint,
    ending text NOT NULL,
    started_at timestamptz,
    finished_at timestamptz NOT NULL,
    error text,
    result bytea
) PARTITION BY RANGE (finished_at);
CREATE INDEX attempts_job ON duetime.attempts (job_id);
CREATE TABLE duetime.attempts_other PARTITION OF duetime.attempts DEFAULT;

CREATE TABLE duetime.once_markers (
    job_id uuid NOT NULL,
    key text COLLATE "C" NOT NULL,
    nonce uuid NOT NULL, -- of the call that took it
    taken_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job_id, key)
);
CREATE INDEX once_markers_taken_at ON duetime.once_markers (taken_at);

CREATE TABLE duetime.schedules (
    id uuid PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    definition bytea NOT NULL, -- JSON: when, missed
    target text COLLATE "C" NOT NULL,
    target_spec bytea,
    payload bytea NOT NULL,
    policies bytea,
    queue text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    overlap text,
    jitter text NOT NULL,
    start_at timestamptz,
    end_at timestamptz,
    max_runs bigint,
    owner text COLLATE "C",
    labels bytea,
    limit_key text COLLATE "C",
    segment smallint NOT NULL,
    next_fire_time timestamptz,
    paused boolean NOT NULL DEFAULT false,
    pause_note text,
    version bigint NOT NULL DEFAULT 1,
    last_fire_time timestamptz,
    runs bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (tenant, name)
) WITH (fillfactor = 70);
CREATE INDEX schedules_due ON duetime.schedules (next_fire_time, segment) WHERE NOT paused AND next_fire_time IS NOT NULL;

-- A schedule after each change; a removal has a version of its own.
CREATE TABLE duetime.schedule_versions (
    LIKE duetime.schedules,
    at timestamptz NOT NULL,
    author text,
    change text NOT NULL,
    PRIMARY KEY (tenant, name, version)
);
-- Copied versions do not have these.
ALTER TABLE duetime.schedule_versions ALTER segment DROP NOT NULL, ALTER runs DROP NOT NULL, ALTER created_at DROP NOT NULL, ALTER updated_at DROP NOT NULL;
CREATE INDEX schedule_versions_at ON duetime.schedule_versions (at);

CREATE TABLE duetime.queues (
    name text COLLATE "C" PRIMARY KEY,
    paused boolean NOT NULL DEFAULT false,
    pause_note text,
    paused_at timestamptz,
    max_running bigint,
    rate_count bigint,
    rate_period bigint, -- microseconds
    spent_until bigint NOT NULL DEFAULT 0, -- microseconds: the starts so far are paid for until then
    limited boolean GENERATED ALWAYS AS (max_running IS NOT NULL OR rate_count IS NOT NULL) STORED
);
CREATE TABLE duetime.queue_tenants (tenant text COLLATE "C", queue text COLLATE "C", PRIMARY KEY (tenant, queue)); -- who has stored jobs where
-- Every claim reads these; mostly they are empty.
CREATE INDEX queues_paused ON duetime.queues (name) WHERE paused;
CREATE INDEX queues_limited ON duetime.queues (name) WHERE limited;

-- The limits of each task, as the node that joined last states them.
CREATE TABLE duetime.limits (
    target text COLLATE "C" PRIMARY KEY,
    max_running bigint,
    rate_count bigint,
    rate_period bigint, -- microseconds
    lowered boolean NOT NULL DEFAULT false -- more jobs may run than the limit allows: settlements count before they pass a permit on
);

-- Limit keys and schedules ('/' and the id): rows to lock. Inserted when first needed, deleted when unused.
CREATE TABLE duetime.limit_keys (
    name text COLLATE "C" PRIMARY KEY,
    spent_until bigint NOT NULL DEFAULT 0, -- microseconds, as in `queues`
    asks_at bigint NOT NULL DEFAULT 0, -- microseconds: a job that the rate holds up asks again then
    served_at bigint NOT NULL DEFAULT 0 -- microseconds: the last start while other keys had to wait for room
) WITH (fillfactor = 50);

-- Free space in the page keeps the updates of every heartbeat out of the index.
CREATE TABLE duetime.nodes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    roles text[] NOT NULL,
    version text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until timestamptz NOT NULL,
    dead boolean NOT NULL DEFAULT false,
    has_left boolean NOT NULL DEFAULT false, -- it ended in an orderly way
    holds_lock boolean NOT NULL DEFAULT false -- its session has an advisory lock, which is free when the process is gone
) WITH (fillfactor = 10);

CREATE SEQUENCE duetime.record_versions; -- each number is given once, also after a record is deleted
CREATE TABLE duetime.records (
    kind text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    value bytea NOT NULL,
    version bigint NOT NULL DEFAULT nextval('duetime.record_versions'),
    expires_at timestamptz,
    PRIMARY KEY (kind, tenant, key)
);
CREATE INDEX records_expiry ON duetime.records (expires_at) WHERE expires_at IS NOT NULL;

-- A writer holds a lock until its transaction ends: ids are committed in the order in which they are given.
CREATE TABLE duetime.events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    event bytea NOT NULL
);

-- A result row of claims and settlements. kind: 'started' (the job is claimed), 'claimable' (it may be claimed from due_at on), 'done' (it is
-- final and a caller waits for it), 'cancel' (its `node` has to cancel it), 'unwritten' (only the id: nothing was written for it).
CREATE TYPE duetime.job_news AS (
    kind text, node bigint,
    id uuid, attempt bigint, target text, payload bytea, due_at timestamptz, queue text, priority smallint, fire_time timestamptz,
    failures bigint, losses bigint, cancel_requested boolean, schedule_id uuid, schedule text, overlap text, policies bytea,
    target_spec bytea, checkpoint bytea, tenant text, begun boolean, limit_key text, permit uuid);

CREATE FUNCTION duetime.micros(moment timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT (extract(epoch FROM moment) * 1000000)::bigint
$$;

-- Labels are a JSON object of text.
CREATE FUNCTION duetime.has_label(labels bytea, key text, value text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT convert_from(labels, 'UTF8')::jsonb ->> key = value
$$;
-- Whether a payload has one of these values, which are JSON, at a path of names. As has_field in model/search.py.
CREATE FUNCTION duetime.has_field(payload bytea, path text[], choices text[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT convert_from(payload, 'UTF8')::jsonb #> path = ANY (choices::jsonb[])
$$;
-- Errors of one cause have the same group. As error_group in model/search.py.
CREATE FUNCTION duetime.error_group(error text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT regexp_replace(left(split_part(rtrim(error, E'\n'), E'\n', -1), 200), $re$'[^']*'|"[^"]*"|[A-Za-z0-9_-]*[0-9][A-Za-z0-9_-]*$re$, 'N', 'g')
        || coalesce((SELECT format(' (in %s, %s)', place[2], place[1])
            FROM regexp_match(error, $re$.*File "(?:[^"]*/)?([^"/]*)", line [0-9]+, in ([^\n]+)$re$) AS place WHERE place IS NOT NULL), '')
$$;

-- Sends the session a message that this job is done; returns `result`. A message instead of a result row: settling thousands of jobs that
-- no caller waits for costs nothing more.
CREATE FUNCTION duetime.announce_done(job uuid, result bytea) RETURNS bytea LANGUAGE plpgsql AS $$
BEGIN
    RAISE INFO 'duetime done %', job;
    RETURN result;
END $$;

-- Lanes with pending jobs that do not wait for a permit, of so many queues after the one given: one search of an index for each, whatever the
-- planner believes about the table.
CREATE FUNCTION duetime.lanes(after_queue text, most bigint) RETURNS TABLE (queue text, priority smallint, tenant text) LANGUAGE plpgsql STABLE
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
#variable_conflict use_column
DECLARE lane record; last text := after_queue;
BEGIN
    SELECT after_queue AS queue, 99::smallint AS priority, '' AS tenant INTO lane;
    LOOP
        SELECT * INTO lane FROM (
            (SELECT j.queue, j.priority, j.tenant FROM duetime.jobs j
            WHERE j.state = 'pending' AND j.overlap IS NULL AND j.limit_key IS NULL
                AND (j.queue, j.priority, j.tenant) > (lane.queue, lane.priority, lane.tenant)
            ORDER BY j.queue, j.priority, j.tenant LIMIT 1)
            UNION ALL
            (SELECT j.queue, j.priority, j.tenant FROM duetime.jobs j
            WHERE (j.limit_key IS NOT NULL OR j.overlap IS NOT NULL) AND j.waits_for IS NULL AND j.state = 'pending'
                AND (j.queue, j.priority, j.tenant) > (lane.queue, lane.priority, lane.tenant)
            ORDER BY j.queue, j.priority, j.tenant LIMIT 1)) x ORDER BY x.queue, x.priority, x.tenant LIMIT 1;
        most := most - (lane.queue <> last)::int;
        EXIT WHEN lane.queue IS NULL OR most < 0;
        last := lane.queue;
        RETURN QUERY SELECT lane.queue, lane.priority, lane.tenant;
    END LOOP;
END $$;

-- Whether jobs that need a permit are due in these lanes, or a queue of them has limits. prefetch: microseconds.
CREATE FUNCTION duetime.needs_permits(queues text[], priorities smallint[], tenants text[], prefetch bigint)
RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM duetime.queues q WHERE q.limited AND NOT q.paused AND q.name = ANY (queues))
        OR EXISTS (SELECT FROM unnest(queues, priorities, tenants) AS l(queue, priority, tenant) CROSS JOIN LATERAL (
                SELECT FROM duetime.jobs j
                WHERE (j.limit_key IS NOT NULL OR j.overlap IS NOT NULL) AND j.waits_for IS NULL AND j.state = 'pending' AND j.queue = l.queue
                    AND j.priority = l.priority AND j.tenant = l.tenant AND j.due_at <= statement_timestamp() + prefetch * interval '1 microsecond' LIMIT 1) j
            WHERE l.queue <> ALL (ARRAY(SELECT q.name FROM duetime.queues q WHERE q.paused)));
END $$;

-- The candidates of a claim, and what is in use of the limits that concern them. Everything is locked until the transaction ends.
-- claimer: the node, which must be alive. room: how many jobs may start. depth: how many jobs of a lane that need a permit to look at;
-- width: how many of these to lock, the first of each limit key before the second, and keys that were served longest ago first. with_limit_key: whether jobs with a limit key are wanted. queues, priorities, lows, tenants: the lanes, in order; `lows` holds only for jobs that
-- need no permit. prefetch: microseconds. picked: jobs that the caller has chosen and locked, of these queues; then there are no lanes.
-- Returns one row per candidate, lane by lane, each by due_at: the fields of model.permits.Candidate; the limit of its target; what is in
-- use of its limit key; another job of its schedule that has started and not finished; limits and use of its queue, if it has limits; the time.
CREATE FUNCTION duetime.claim_candidates(
    claimer bigint, room bigint, depth bigint, width bigint, with_limit_key boolean, queues text[], priorities smallint[], lows timestamptz[],
    tenants text[], prefetch bigint, targets text[], picked uuid[] DEFAULT '{}')
RETURNS TABLE (
    id uuid, queue text, priority smallint, due_at timestamptz, fire_time timestamptz, attempt bigint, target text, limit_key text,
    schedule_id uuid, overlap text, tenant text, max_running bigint, rate_count bigint, rate_period bigint, permits bigint, spent_until bigint,
    asks_at bigint, served_at bigint, rival uuid, queue_limited boolean, queue_max_running bigint, queue_rate_count bigint, queue_rate_period bigint,
    queue_running bigint, queue_spent_until bigint, now timestamptz)
LANGUAGE plpgsql SET enable_hashjoin = on AS $$
#variable_conflict use_column
DECLARE
    horizon timestamptz := clock_timestamp() + prefetch * interval '1 microsecond';
    limited_queues text[];
    lane record;
    ids uuid[];
    wanted bigint := greatest(room, width);
    names text[];
    locked bigint;
BEGIN
    limited_queues := ARRAY(SELECT q.name FROM duetime.queues q WHERE q.limited AND NOT q.paused AND q.name = ANY (queues)
        ORDER BY q.name FOR NO KEY UPDATE);
    FOR lane IN
        SELECT l.queue, l.priority, l.tenant, CASE WHEN l.queue = ANY (limited_queues) THEN '-infinity' ELSE l.low END AS low
        FROM unnest(queues, priorities, lows, tenants) WITH ORDINALITY AS l(queue, priority, low, tenant, place)
        WHERE l.queue <> ALL (ARRAY(SELECT q.name FROM duetime.queues q WHERE q.paused))
            AND EXISTS (SELECT FROM duetime.nodes n WHERE n.id = claimer AND NOT n.dead AND n.lease_until > clock_timestamp())
        ORDER BY l.place
    LOOP
        ids := ARRAY(
            SELECT c.id FROM (
                (SELECT k.id, n.due_at FROM (
                    SELECT j.*, row_number() OVER (PARTITION BY j.limit_key ORDER BY j.due_at) AS turn,
                        coalesce((SELECT k.served_at FROM duetime.limit_keys k WHERE k.name = j.limit_key), 0) AS served_at FROM (
                        SELECT j.id, j.due_at, j.limit_key FROM duetime.jobs j
                        WHERE (j.limit_key IS NOT NULL OR j.overlap IS NOT NULL) AND j.waits_for IS NULL AND j.state = 'pending'
                            AND j.queue = lane.queue AND j.priority = lane.priority AND j.tenant = lane.tenant AND j.due_at <= horizon
                            AND j.target = ANY (targets)
                            AND (with_limit_key OR j.limit_key IS NULL)
                        ORDER BY j.due_at LIMIT depth) j
                    ORDER BY turn, served_at, due_at) n
                CROSS JOIN LATERAL (SELECT k.id FROM duetime.jobs k
                    WHERE k.id = n.id AND k.state = 'pending' AND k.waits_for IS NULL LIMIT 1 FOR UPDATE SKIP LOCKED) k
                LIMIT width)
                UNION ALL
                SELECT * FROM (SELECT j.id, j.due_at FROM duetime.jobs j
                    WHERE j.state = 'pending' AND j.overlap IS NULL AND j.limit_key IS NULL AND j.queue = lane.queue
                        AND j.priority = lane.priority AND j.tenant = lane.tenant AND j.due_at >= lane.low AND j.due_at <= horizon AND j.target = ANY (targets)
                    ORDER BY j.due_at LIMIT room FOR UPDATE SKIP LOCKED) plain) c
            ORDER BY c.due_at);
        picked := picked || ids;
        -- The jobs of a full queue must not hide those of the lanes behind them.
        CONTINUE WHEN lane.queue = ANY (limited_queues);
        wanted := wanted - cardinality(ids);
        EXIT WHEN wanted <= 0;
    END LOOP;

    names := ARRAY(SELECT DISTINCT v.name FROM unnest(picked) AS p(id)
        CROSS JOIN LATERAL (SELECT j.limit_key, j.target, j.overlap, j.schedule_id FROM duetime.jobs j WHERE j.id = p.id LIMIT 1) j
        CROSS JOIN LATERAL (VALUES
            (CASE WHEN j.limit_key IS NOT NULL AND EXISTS (SELECT FROM duetime.limits l WHERE l.target = j.target) THEN j.limit_key END),
            (CASE WHEN j.overlap IS NOT NULL THEN '/' || j.schedule_id END)) AS v(name)
        WHERE v.name IS NOT NULL ORDER BY 1);
    LOOP
        INSERT INTO duetime.limit_keys (name) SELECT n.name FROM unnest(names) AS n(name)
        WHERE NOT EXISTS (SELECT FROM duetime.limit_keys k WHERE k.name = n.name OFFSET 0) ORDER BY n.name ON CONFLICT DO NOTHING;
        PERFORM FROM duetime.limit_keys k WHERE k.name = ANY (names) ORDER BY k.name FOR NO KEY UPDATE;
        GET DIAGNOSTICS locked = ROW_COUNT;
        EXIT WHEN locked >= cardinality(names); -- a row that retention deleted meanwhile is inserted again
    END LOOP;

    -- A statement of its own: its snapshot has everything that earlier holders of the locks did.
    RETURN QUERY
    WITH c AS MATERIALIZED (
            SELECT p.place, j.* FROM unnest(picked) WITH ORDINALITY AS p(id, place) CROSS JOIN LATERAL (
                SELECT j.id, j.queue, j.priority, j.due_at, j.fire_time, j.attempt, j.target, j.limit_key, j.schedule_id, j.overlap, j.tenant
                FROM duetime.jobs j WHERE j.id = p.id LIMIT 1) j),
        k AS MATERIALIZED (
            SELECT k.name, k.spent_until, k.asks_at, k.served_at, CASE WHEN k.name = ANY (names) THEN (SELECT count(DISTINCT r.permit)
                FROM duetime.jobs r WHERE r.limit_key = k.name AND r.limit_key IS NOT NULL AND r.state = 'running') ELSE 0 END AS permits
            FROM duetime.limit_keys k WHERE k.name = ANY (ARRAY(SELECT c.limit_key FROM c))),
        q AS MATERIALIZED (
            SELECT q.*, (SELECT count(*) FROM (SELECT id FROM duetime.nodes UNION ALL SELECT 0) n CROSS JOIN LATERAL (
                SELECT FROM duetime.jobs r WHERE r.node = n.id AND r.queue = q.name) r) AS running
            FROM duetime.queues q WHERE q.name = ANY (limited_queues))
    SELECT c.id, c.queue, c.priority, c.due_at, c.fire_time, c.attempt, c.target, c.limit_key, c.schedule_id, c.overlap, c.tenant,
        l.max_running, l.rate_count, l.rate_period, k.permits, k.spent_until, k.asks_at, k.served_at, CASE WHEN c.overlap IS NOT NULL THEN (
            SELECT r.id FROM duetime.jobs r WHERE r.schedule_id = c.schedule_id AND r.attempt > 0 AND r.id <> c.id LIMIT 1) END,
        q.limited, q.max_running, q.rate_count, q.rate_period, q.running, q.spent_until, clock_timestamp()
    FROM c
    LEFT JOIN duetime.limits l ON l.target = c.target AND c.limit_key IS NOT NULL
    LEFT JOIN k ON k.name = c.limit_key
    LEFT JOIN q ON q.name = c.queue
    ORDER BY c.place;
END $$;

-- Passes permits on to the best jobs that wait for them. names, permits, wanted, maxima: what is freed, its permit, how many jobs are wanted
-- under it, and the limit if it was lowered. heir: the node that takes over, or NULL; room, queues, targets: how many, and which, it can run.
-- Returns 'started' jobs, and 'claimable' ones that need a claim.
CREATE FUNCTION duetime.pass_on(
    names text[], permits uuid[], wanted bigint[], maxima bigint[], heir bigint, room bigint, queues text[], targets text[])
RETURNS SETOF duetime.job_news LANGUAGE plpgsql SET enable_nestloop = on AS $$
#variable_conflict use_column
DECLARE
    closed text[];
    starting tid[];
    inherited uuid[];
    claimable tid[];
    passed text[];
    total bigint; -- jobs that are wanted
BEGIN
    IF cardinality(names) = 0 THEN
        RETURN;
    END IF;
    SELECT ARRAY(SELECT q.name FROM duetime.queues q WHERE q.paused UNION ALL SELECT q.name FROM duetime.queues q WHERE q.limited),
        CASE WHEN EXISTS (SELECT FROM duetime.nodes n WHERE n.id = heir AND NOT n.dead AND n.lease_until > clock_timestamp())
            THEN room ELSE 0 END, (SELECT sum(w.wanted) FROM unnest(wanted) AS w(wanted))
    INTO closed, room, total;
    FOR look IN 1..2 LOOP
        -- First without locks: a permit that is passed on changes no count. Then, for permits without a waiting job, under the locks that a
        -- claim holds while it makes jobs wait: after this look no job can have begun to wait unseen.
        IF look = 2 THEN
            PERFORM FROM duetime.limit_keys k WHERE k.name = ANY (names) ORDER BY k.name FOR NO KEY UPDATE;
        END IF;
        SELECT array_agg(n.tid) FILTER (WHERE n.direct), array_agg(n.permits[n.number]) FILTER (WHERE n.direct),
            array_agg(n.tid) FILTER (WHERE NOT n.direct), array_agg(n.name)
        INTO starting, inherited, claimable, passed
        FROM (SELECT n.tid, f.name, f.permits, n.direct AND row_number() OVER (PARTITION BY n.direct) <= room AS direct,
                row_number() OVER (PARTITION BY f.name) AS number
            FROM (SELECT f.name, max(f.maximum) AS maximum, array_agg(f.permit ORDER BY s.step) AS permits
                FROM unnest(names, permits, wanted, maxima) AS f(name, permit, wanted, maximum) CROSS JOIN generate_series(1, f.wanted) AS s(step)
                GROUP BY f.name) f
            CROSS JOIN LATERAL (
                SELECT j.ctid AS tid, (j.limit_key IS NULL OR j.overlap IS NULL) AND j.queue = ANY (queues) AND j.queue <> ALL (closed)
                    AND j.target = ANY (targets) AND NOT EXISTS (SELECT FROM duetime.limits l
                        WHERE l.target = j.target AND l.rate_count IS NOT NULL AND j.limit_key IS NOT NULL OFFSET 0) AS direct
                FROM duetime.jobs j WHERE j.waits_for = f.name ORDER BY j.priority DESC, j.due_at
                LIMIT CASE WHEN f.maximum IS NULL THEN cardinality(f.permits) ELSE greatest(0, least(cardinality(f.permits), f.maximum - (
                    SELECT count(DISTINCT r.permit) FROM duetime.jobs r
                    WHERE r.limit_key = f.name AND r.limit_key IS NOT NULL AND r.state = 'running'))) END FOR UPDATE SKIP LOCKED) n) n;
        RETURN QUERY UPDATE duetime.jobs j SET state = 'running', attempt = attempt + 1, node = heir, claimed_at = clock_timestamp(),
            waits_for = NULL, permit = CASE WHEN j.limit_key IS NOT NULL THEN inherited[array_position(starting, j.ctid)] END,
            cancel_requested = j.cancel_requested OR j.overlap IS NOT NULL AND EXISTS (SELECT FROM duetime.jobs o
                WHERE o.waits_for = '/' || j.schedule_id AND o.overlap = 'cancel_previous' AND o.id <> j.id OFFSET 0)
        WHERE ctid = ANY (starting)
        RETURNING 'started', heir, id, attempt, target, payload, due_at, queue, priority, fire_time, failures, losses, cancel_requested,
            schedule_id, schedule, overlap, policies, target_spec, checkpoint, tenant, begun, limit_key, permit;
        IF claimable IS NOT NULL THEN
            RETURN QUERY UPDATE duetime.jobs SET waits_for = NULL WHERE ctid = ANY (claimable)
            RETURNING 'claimable', NULL::bigint, id, attempt, target, payload, due_at, queue, priority, fire_time, failures, losses,
                cancel_requested, schedule_id, schedule, overlap, policies, target_spec, checkpoint, tenant, begun, limit_key, permit;
        END IF;
        room := room - coalesce(cardinality(starting), 0);
        EXIT WHEN cardinality(passed) >= total;
        SELECT array_agg(f.name), array_agg(f.permit), array_agg(1), array_agg(f.maximum) INTO names, permits, wanted, maxima FROM (
            SELECT f.*, row_number() OVER (PARTITION BY f.name) AS number FROM unnest(names, permits, maxima) AS f(name, permit, maximum)) f
        LEFT JOIN (SELECT p.name, count(*) AS passed FROM unnest(passed) AS p(name) GROUP BY p.name) p ON p.name = f.name
        WHERE f.number > coalesce(p.passed, 0);
        EXIT WHEN names IS NULL;
    END LOOP;
END $$;

-- Stores jobs in the transaction of a caller's own session. drafts: JSON, bytes in base64, instants in microseconds. home: tells our own
-- database from another with the same tables. Returns for each draft the id of the job that holds its place.
CREATE FUNCTION duetime.add_jobs_from_json(drafts text, home text) RETURNS TABLE (id uuid, answer uuid) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    IF home <> (SELECT duetime.micros(min(v.applied_at))::text FROM duetime.schema_version v) THEN
        RAISE EXCEPTION 'this is another database' USING ERRCODE = 'DT001';
    END IF;
    INSERT INTO duetime.queues (name) SELECT DISTINCT x.queue FROM json_to_recordset(drafts::json) AS x(queue text)
    WHERE NOT EXISTS (SELECT FROM duetime.queues q WHERE q.name = x.queue) ON CONFLICT DO NOTHING;
    INSERT INTO duetime.queue_tenants (tenant, queue)
    SELECT DISTINCT x.tenant, x.queue FROM json_to_recordset(drafts::json) AS x(tenant text, queue text)
    WHERE NOT EXISTS (SELECT FROM duetime.queue_tenants t WHERE t.tenant = x.tenant AND t.queue = x.queue) ON CONFLICT DO NOTHING;
    FOR round IN 1..10 LOOP
        INSERT INTO duetime.jobs (id, tenant, schedule_id, schedule, fire_time, due_at, queue, priority, overlap,
            target, target_spec, payload, policies, owner, labels, unique_key, retry_of, limit_key, waits_for)
        SELECT x.id, x.tenant, x.schedule_id, x.schedule, 'epoch'::timestamptz + x.fire_time * interval '1 microsecond',
            'epoch'::timestamptz + x.due_at * interval '1 microsecond', x.queue, x.priority, x.overlap, x.target, decode(x.target_spec, 'base64'),
            decode(x.payload, 'base64'), decode(x.policies, 'base64'), x.owner, decode(x.labels, 'base64'), x.unique_key, x.retry_of,
            x.limit_key, x.waits_for
        FROM json_to_recordset(drafts::json) AS x(id uuid, tenant text, schedule_id uuid, schedule text, fire_time bigint, due_at bigint,
            queue text, priority smallint, overlap text, target text, target_spec text, payload text, policies text, owner text,
            labels text, unique_key text, retry_of uuid, limit_key text, waits_for text)
        ON CONFLICT DO NOTHING;
        -- A job that held a key may have finished between the two statements: then the next round can store ours.
        EXIT WHEN NOT EXISTS (SELECT FROM json_to_recordset(drafts::json) AS x(id uuid, tenant text, unique_key text)
            WHERE NOT EXISTS (SELECT FROM duetime.jobs j WHERE j.id = x.id OFFSET 0)
                AND NOT EXISTS (SELECT FROM duetime.jobs j WHERE j.tenant = x.tenant AND j.unique_key = x.unique_key OFFSET 0));
    END LOOP;
    PERFORM pg_notify('duetime', format('j %s %s %s %s%s', l.priority, l.due_at, length(l.tenant), l.tenant, l.queue))
    FROM (SELECT x.queue, x.priority, x.tenant, min(x.due_at) AS due_at
        FROM json_to_recordset(drafts::json) AS x(queue text, priority smallint, tenant text, due_at bigint)
        GROUP BY x.queue, x.priority, x.tenant) l
    WHERE l.due_at < duetime.micros(clock_timestamp()) + 2000000;
    RETURN QUERY SELECT x.id, CASE WHEN EXISTS (SELECT FROM duetime.jobs j WHERE j.id = x.id OFFSET 0) THEN x.id
        ELSE (SELECT j.id FROM duetime.jobs j WHERE j.tenant = x.tenant AND j.unique_key = x.unique_key) END
    FROM json_to_recordset(drafts::json) AS x(id uuid, tenant text, unique_key text);
END $$;

-- Creates the partition of `parent` for this day. A day that has rows in the default partition is left there.
CREATE FUNCTION duetime.add_day(parent text, opening timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    partition text := parent || '_' || to_char(opening AT TIME ZONE 'UTC', 'YYYYMMDD');
    taken boolean;
BEGIN
    IF to_regclass('duetime.' || partition) IS NOT NULL THEN RETURN; END IF;
    EXECUTE format('SELECT EXISTS (SELECT FROM duetime.%I WHERE finished_at >= $1 AND finished_at < $2)', parent || '_other')
        INTO taken USING opening, opening + interval '24 hours';
    IF NOT taken THEN
        EXECUTE format('CREATE TABLE duetime.%I PARTITION OF duetime.%I FOR VALUES FROM (%L) TO (%L)',
            partition, parent, opening, opening + interval '24 hours');
    END IF;
END $$;

-- Adds today and the days that follow.
CREATE FUNCTION duetime.add_days(parent text, days integer) RETURNS void LANGUAGE sql AS $$
    SELECT duetime.add_day(parent, date_trunc('day', clock_timestamp(), 'UTC') + day * interval '24 hours') FROM generate_series(0, days) AS day
$$;

-- Drops the partitions of `parent` for days that end before `horizon`. Returns about how many rows they had.
CREATE FUNCTION duetime.drop_days(parent text, horizon timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    old record;
    dropped bigint := 0;
    counted bigint;
BEGIN
    FOR old IN
        SELECT c.relname, c.reltuples::bigint AS estimate FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = ('duetime.' || parent)::regclass AND c.relname ~ ('^' || parent || '_\d{8}$')
            AND (to_date(right(c.relname, 8), 'YYYYMMDD') + 1)::timestamp AT TIME ZONE 'UTC' <= horizon
    LOOP
        counted := old.estimate;
        IF counted < 100000 THEN
            EXECUTE format('SELECT count(*) FROM duetime.%I', old.relname) INTO counted;
        END IF;
        EXECUTE format('DROP TABLE duetime.%I', old.relname);
        dropped := dropped + counted;
    END LOOP;
    RETURN dropped;
END $$;

SELECT duetime.add_days('history', 7), duetime.add_days('attempts', 7);
