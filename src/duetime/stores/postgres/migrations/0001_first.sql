-- The first schema. Jobs that still have something ahead of them live in `jobs`; finished ones move to `history`, one partition a day.
--
-- No partial index on `jobs` may have a predicate that the settling statement's own conditions (id, attempt, state = 'running')
-- imply: the planner would walk that index instead of the primary key.

CREATE TABLE duetime.jobs (
    -- the columns of a draft, in its order: COPY takes drafts as they are
    id uuid PRIMARY KEY,
    tenant text NOT NULL,
    schedule_id uuid,
    schedule text COLLATE "C",
    fire_time timestamptz NOT NULL,
    due_at timestamptz NOT NULL,
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
    -- what becomes of it
    state text COLLATE "C" NOT NULL DEFAULT 'pending',
    attempt bigint NOT NULL DEFAULT 0,
    failures bigint NOT NULL DEFAULT 0,
    losses bigint NOT NULL DEFAULT 0,
    node bigint,
    cancel_requested boolean NOT NULL DEFAULT false,
    checkpoint bytea,
    progress bytea,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    claimed_at timestamptz,
    error text,
    begun boolean NOT NULL DEFAULT false -- a job lost before: its worker has announced that it starts
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

CREATE INDEX jobs_due ON duetime.jobs (queue, priority, due_at) WHERE state = 'pending' AND overlap IS NULL;
CREATE INDEX jobs_exclusive ON duetime.jobs (queue, priority, due_at) WHERE state = 'pending' AND overlap IS NOT NULL;
-- One job of an exclusive schedule at a time: whatever the claims believe, this index decides.
CREATE UNIQUE INDEX jobs_started ON duetime.jobs (schedule_id) WHERE overlap IS NOT NULL AND attempt > 0;
CREATE INDEX jobs_schedule ON duetime.jobs (schedule_id, attempt, fire_time) WHERE schedule_id IS NOT NULL;
CREATE INDEX jobs_schedule_name ON duetime.jobs (schedule, id) WHERE schedule IS NOT NULL;
CREATE INDEX jobs_owner ON duetime.jobs (owner, id) WHERE owner IS NOT NULL;
CREATE INDEX jobs_node ON duetime.jobs (node) WHERE node IS NOT NULL;
CREATE INDEX jobs_cancel ON duetime.jobs (node) WHERE cancel_requested;
CREATE UNIQUE INDEX jobs_unique_key ON duetime.jobs (tenant, unique_key) WHERE unique_key IS NOT NULL;

CREATE TABLE duetime.history (
    LIKE duetime.jobs INCLUDING DEFAULTS,
    started_at timestamptz,
    finished_at timestamptz NOT NULL,
    result bytea,
    disposition text
) PARTITION BY RANGE (finished_at);

-- No unique key: the delete from `jobs` in the same statement is what makes a completion single.
CREATE INDEX history_id ON duetime.history (id);
CREATE INDEX history_dead ON duetime.history (id) WHERE state = 'dead';
CREATE INDEX history_schedule_name ON duetime.history (schedule, id) WHERE schedule IS NOT NULL;
CREATE INDEX history_owner ON duetime.history (owner, id) WHERE owner IS NOT NULL;
CREATE TABLE duetime.history_other PARTITION OF duetime.history DEFAULT;

CREATE TABLE duetime.attempts (
    job_id uuid NOT NULL,
    attempt bigint NOT NULL,
    node bigint,
    ending text NOT NULL,
    started_at timestamptz,
    finished_at timestamptz NOT NULL,
    error text
) PARTITION BY RANGE (finished_at);

CREATE INDEX attempts_job ON duetime.attempts (job_id);
CREATE TABLE duetime.attempts_other PARTITION OF duetime.attempts DEFAULT;

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
    jitter bigint NOT NULL,
    start_at timestamptz,
    end_at timestamptz,
    max_runs bigint,
    owner text COLLATE "C",
    labels bytea,
    segment smallint NOT NULL,
    next_fire_time timestamptz,
    version bigint NOT NULL DEFAULT 1,
    paused boolean NOT NULL DEFAULT false,
    pause_note text,
    last_fire_time timestamptz,
    runs bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (tenant, name)
) WITH (fillfactor = 70);

CREATE INDEX schedules_due ON duetime.schedules (next_fire_time, segment) WHERE NOT paused AND next_fire_time IS NOT NULL;

CREATE TABLE duetime.queues (name text COLLATE "C" PRIMARY KEY);

-- Beaten every few seconds: room in the page keeps those updates off the index.
CREATE TABLE duetime.nodes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    roles text[] NOT NULL,
    version text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until timestamptz NOT NULL,
    dead boolean NOT NULL DEFAULT false,
    holds_lock boolean NOT NULL -- an advisory lock of its session tells whether its process is there
) WITH (fillfactor = 10);

CREATE TABLE duetime.leases (
    name text COLLATE "C" PRIMARY KEY,
    holder bigint,
    token bigint NOT NULL DEFAULT 1
) WITH (fillfactor = 50);

-- Partitions for the days ahead. A day that already has rows in the default partition is left there.
CREATE FUNCTION duetime.add_days(parent text, days integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    midnight timestamptz := date_trunc('day', clock_timestamp(), 'UTC');
    opening timestamptz;
    partition text;
    taken boolean;
BEGIN
    FOR day IN 0..days LOOP
        opening := midnight + day * interval '24 hours';
        partition := parent || '_' || to_char(opening AT TIME ZONE 'UTC', 'YYYYMMDD');
        CONTINUE WHEN to_regclass('duetime.' || partition) IS NOT NULL;
        EXECUTE format('SELECT EXISTS (SELECT FROM duetime.%I WHERE finished_at >= $1 AND finished_at < $2)', parent || '_other')
            INTO taken USING opening, opening + interval '24 hours';
        CONTINUE WHEN taken;
        EXECUTE format('CREATE TABLE duetime.%I PARTITION OF duetime.%I FOR VALUES FROM (%L) TO (%L)',
            partition, parent, opening, opening + interval '24 hours');
    END LOOP;
END $$;

-- Drops the days that end before `horizon`; answers about how many rows went.
CREATE FUNCTION duetime.drop_days(parent text, horizon timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    old record;
    gone bigint := 0;
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
        gone := gone + counted;
    END LOOP;
    RETURN gone;
END $$;

SELECT duetime.add_days('history', 7), duetime.add_days('attempts', 7);
