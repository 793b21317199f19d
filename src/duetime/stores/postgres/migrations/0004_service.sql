-- What the service needs: records, events, versions of schedules, workers outside.
--
-- Only adds. The rule about predicates at the top of the first one holds here, too.

-- Nobody's own id: `node` of a job that was handed over to a worker outside is 0, so that it counts as running wherever nodes are asked
-- for, and no node ever has it. `due_at` is then the deadline of its report. "node = 0" would let the planner take the index of nodes, and
-- with it read every one of them: so whoever asks for deadlines says it as the predicate does.
CREATE INDEX jobs_outside ON duetime.jobs (due_at) WHERE coalesce(node, 1) = 0;

CREATE SEQUENCE duetime.record_versions; -- each is given once, whatever becomes of the record
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

-- Whoever adds to it holds a lock until its transaction is over: so ids are committed in the order in which they are given.
CREATE TABLE duetime.events (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    event bytea NOT NULL
);

-- What a schedule was after each change, in the columns of `schedules`; the row of a removal has a number of its own.
CREATE TABLE duetime.schedule_versions (
    LIKE duetime.schedules,
    at timestamptz NOT NULL,
    author text,
    change text NOT NULL,
    PRIMARY KEY (tenant, name, version)
);
CREATE INDEX schedule_versions_at ON duetime.schedule_versions (at);
INSERT INTO duetime.schedule_versions (id, tenant, name, definition, target, target_spec, payload, policies, queue, priority, overlap, jitter,
    start_at, end_at, max_runs, owner, labels, segment, next_fire_time, version, paused, pause_note, last_fire_time, runs, created_at,
    updated_at, gate, at, author, change)
SELECT id, tenant, name, definition, target, target_spec, payload, policies, queue, priority, overlap, jitter,
    start_at, end_at, max_runs, owner, labels, segment, next_fire_time, version, paused, pause_note, last_fire_time, runs, created_at,
    updated_at, gate, updated_at, NULL, CASE WHEN version = 1 THEN 'created' WHEN paused THEN 'paused' ELSE 'replaced' END
FROM duetime.schedules;

-- Notes what a schedule has become, and answers it; a removal has the number after its last. A new schedule begins after the numbers of
-- earlier ones of its name: if one of those went in this very moment, the caller must count again. Else the first row of a number stays:
-- only a process of the version before, which begins at 1, can come to the same one twice.
CREATE FUNCTION duetime.noted(s duetime.schedules, author text, change text) RETURNS duetime.schedules LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO duetime.schedule_versions (id, tenant, name, definition, target, target_spec, payload, policies, queue, priority, overlap,
        jitter, start_at, end_at, max_runs, owner, labels, segment, next_fire_time, version, paused, pause_note, last_fire_time, runs,
        created_at, updated_at, gate, at, author, change)
    VALUES (s.id, s.tenant, s.name, s.definition, s.target, s.target_spec, s.payload, s.policies, s.queue, s.priority, s.overlap,
        s.jitter, s.start_at, s.end_at, s.max_runs, s.owner, s.labels, s.segment, s.next_fire_time,
        s.version + CASE WHEN change = 'removed' THEN 1 ELSE 0 END, s.paused, s.pause_note, s.last_fire_time, s.runs,
        s.created_at, s.updated_at, s.gate, CASE WHEN change = 'removed' THEN clock_timestamp() ELSE s.updated_at END, author, change)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND AND change = 'created' THEN
        RAISE EXCEPTION 'version % of this schedule is taken', s.version USING ERRCODE = 'unique_violation';
    END IF;
    RETURN s;
END $$;

-- Labels are a JSON object of text.
CREATE FUNCTION duetime.has_label(labels bytea, key text, value text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT convert_from(labels, 'UTF8')::jsonb ->> key = value
$$;
