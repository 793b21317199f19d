-- Limits, turns, unique jobs over finished ones, marks, waiting, and jobs stored in a caller's own transaction.
--
-- Only adds: what the first schema has stays readable. The rule about predicates at the top of the first one holds here, too.

ALTER TABLE duetime.jobs
    ADD COLUMN gate text COLLATE "C",
    ADD COLUMN awaited boolean NOT NULL DEFAULT false; -- somebody wants to hear of its end
ALTER TABLE duetime.history ADD COLUMN gate text COLLATE "C";
ALTER TABLE duetime.schedules ADD COLUMN gate text COLLATE "C";

-- Jobs without a gate keep the short way to themselves; what tells them apart comes first in a predicate, since every write evaluates it.
DROP INDEX duetime.jobs_due;
CREATE INDEX jobs_due ON duetime.jobs (queue, priority, due_at) WHERE state = 'pending' AND overlap IS NULL AND gate IS NULL;
-- Of the two for jobs with a gate, the planner must not take the one by time where the one by gate is meant: only a statement that says
-- due_at > '-infinity', which is always true, can use it.
CREATE INDEX jobs_gated_due ON duetime.jobs (queue, priority, due_at) WHERE gate IS NOT NULL AND state = 'pending' AND due_at > '-infinity';
CREATE INDEX jobs_gated ON duetime.jobs (queue, priority, target, gate, due_at) WHERE gate IS NOT NULL AND state = 'pending';
CREATE INDEX jobs_gate_running ON duetime.jobs (gate) WHERE gate IS NOT NULL AND state = 'running';
-- By queue as well: so the running jobs of a limited queue are counted.
DROP INDEX duetime.jobs_node;
CREATE INDEX jobs_node ON duetime.jobs (node, queue) WHERE node IS NOT NULL;
CREATE INDEX history_unique_key ON duetime.history (tenant, unique_key) WHERE unique_key IS NOT NULL;

-- Whoever claims jobs of a limited gate locks its row. Made when first needed, forgotten when nothing is spent.
CREATE TABLE duetime.gates (
    name text COLLATE "C" PRIMARY KEY,
    spent_until bigint NOT NULL DEFAULT 0 -- microseconds: the starts so far are paid for until then
) WITH (fillfactor = 50);
CREATE INDEX gates_spent ON duetime.gates (spent_until) WHERE spent_until > 0;

ALTER TABLE duetime.queues
    ADD COLUMN paused boolean NOT NULL DEFAULT false,
    ADD COLUMN pause_note text,
    ADD COLUMN paused_at timestamptz,
    ADD COLUMN most bigint,
    ADD COLUMN rate_count bigint,
    ADD COLUMN rate_period bigint, -- microseconds
    ADD COLUMN spent_until bigint NOT NULL DEFAULT 0,
    ADD COLUMN limited boolean GENERATED ALWAYS AS (most IS NOT NULL OR rate_count IS NOT NULL) STORED;
-- Every claim looks into these; mostly they are empty.
CREATE INDEX queues_paused ON duetime.queues (name) WHERE paused;
CREATE INDEX queues_limited ON duetime.queues (name) WHERE limited;

CREATE TABLE duetime.marks (
    job_id uuid NOT NULL,
    key text COLLATE "C" NOT NULL,
    nonce uuid NOT NULL, -- of the call that took it
    made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job_id, key)
);
CREATE INDEX marks_made_at ON duetime.marks (made_at);

-- Answers its second argument and tells the session that this job, for which somebody waits, is done. A message instead of a returned
-- row: settling thousands of jobs for which nobody waits costs nothing more.
CREATE FUNCTION duetime.told(job uuid, result bytea) RETURNS bytea LANGUAGE plpgsql AS $$
BEGIN
    RAISE INFO 'duetime done %', job;
    RETURN result;
END $$;

-- How many starts a rate allows now, NULL for no rate: model/limit.py has the arithmetic.
CREATE FUNCTION duetime.starts_allowed(rate_count bigint, rate_period bigint, spent_until bigint, moment bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN rate_count IS NOT NULL THEN
        greatest(0, least(rate_count, (moment + rate_period - greatest(spent_until, moment)) / greatest(1, rate_period / rate_count))) END
$$;

CREATE FUNCTION duetime.micros(moment timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT (extract(epoch FROM moment) * 1000000)::bigint
$$;

-- Stores jobs in the transaction of somebody else's session: drafts as JSON, bytes in base64, instants in microseconds. Answers for each
-- the id of the job that answers for it. `home` tells our own database from another that also has our tables.
CREATE FUNCTION duetime.add_guest_jobs(drafts text, home text) RETURNS TABLE (id uuid, answer uuid) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    IF home <> (SELECT duetime.micros(min(v.applied_at))::text FROM duetime.schema_version v) THEN
        RAISE EXCEPTION 'this is another database' USING ERRCODE = 'DT001';
    END IF;
    INSERT INTO duetime.queues (name) SELECT DISTINCT x.queue FROM json_to_recordset(drafts::json) AS x(queue text)
    WHERE NOT EXISTS (SELECT FROM duetime.queues q WHERE q.name = x.queue) ON CONFLICT DO NOTHING;
    FOR round IN 1..10 LOOP
        INSERT INTO duetime.jobs (id, tenant, schedule_id, schedule, fire_time, due_at, queue, priority, overlap,
            target, target_spec, payload, policies, owner, labels, unique_key, retry_of, gate)
        SELECT x.id, x.tenant, x.schedule_id, x.schedule, 'epoch'::timestamptz + x.fire_time * interval '1 microsecond',
            'epoch'::timestamptz + x.due_at * interval '1 microsecond', x.queue, x.priority, x.overlap, x.target, decode(x.target_spec, 'base64'),
            decode(x.payload, 'base64'), decode(x.policies, 'base64'), x.owner, decode(x.labels, 'base64'), x.unique_key, x.retry_of, x.gate
        FROM json_to_recordset(drafts::json) AS x(id uuid, tenant text, schedule_id uuid, schedule text, fire_time bigint, due_at bigint,
            queue text, priority smallint, overlap text, target text, target_spec text, payload text, policies text, owner text,
            labels text, unique_key text, retry_of uuid, gate text)
        ON CONFLICT DO NOTHING;
        -- A job that held a key may have finished between our two looks: then there is room for ours now.
        EXIT WHEN NOT EXISTS (SELECT FROM json_to_recordset(drafts::json) AS x(id uuid, tenant text, unique_key text)
            WHERE NOT EXISTS (SELECT FROM duetime.jobs j WHERE j.id = x.id OFFSET 0)
                AND NOT EXISTS (SELECT FROM duetime.jobs j WHERE j.tenant = x.tenant AND j.unique_key = x.unique_key OFFSET 0));
    END LOOP;
    PERFORM pg_notify('duetime', format('j %s %s %s', l.priority, l.due_at, l.queue))
    FROM (SELECT x.queue, x.priority, min(x.due_at) AS due_at
        FROM json_to_recordset(drafts::json) AS x(queue text, priority smallint, due_at bigint) GROUP BY x.queue, x.priority) l
    WHERE l.due_at < duetime.micros(clock_timestamp()) + 2000000;
    RETURN QUERY SELECT x.id, CASE WHEN EXISTS (SELECT FROM duetime.jobs j WHERE j.id = x.id OFFSET 0) THEN x.id
        ELSE (SELECT j.id FROM duetime.jobs j WHERE j.tenant = x.tenant AND j.unique_key = x.unique_key) END
    FROM json_to_recordset(drafts::json) AS x(id uuid, tenant text, unique_key text);
END $$;
