-- Claims in which gates and limited queues play a part.

-- Whether an exclusive job may start: no other of its schedule has started, and no older one is waiting in these lanes.
CREATE FUNCTION duetime.stands_alone(
    job uuid, its_schedule uuid, its_attempt bigint, its_fire_time timestamptz,
    queues text[], priorities smallint[], targets text[], horizon timestamptz)
RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN NOT EXISTS (SELECT FROM duetime.jobs s WHERE s.schedule_id = its_schedule AND s.attempt > 0 AND s.id <> job OFFSET 0)
        AND (its_attempt > 0 OR NOT EXISTS (
            SELECT FROM duetime.jobs o
            WHERE o.schedule_id = its_schedule AND o.attempt = 0 AND o.fire_time <= its_fire_time
                AND (o.fire_time, o.id) < (its_fire_time, job) AND o.state = 'pending' AND o.overlap IS NOT NULL
                AND o.target = ANY (targets) AND o.due_at <= horizon
                AND EXISTS (SELECT FROM unnest(queues, priorities) AS m(queue, priority)
                    WHERE m.queue = o.queue AND m.priority = o.priority) OFFSET 0));
END $$;

-- Whether gates or limited queues play a part in a claim from these lanes.
CREATE FUNCTION duetime.goes_in_turns(queues text[], priorities smallint[], prefetch bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM duetime.queues q WHERE q.limited AND NOT q.paused AND q.name = ANY (queues))
        OR EXISTS (SELECT FROM unnest(queues, priorities) AS l(queue, priority) CROSS JOIN LATERAL (
                SELECT FROM duetime.jobs j WHERE j.state = 'pending' AND j.gate IS NOT NULL AND j.queue = l.queue AND j.priority = l.priority
                    AND j.due_at > '-infinity' AND j.due_at <= statement_timestamp() + prefetch * interval '1 microsecond' LIMIT 1) j
            WHERE l.queue <> ALL (ARRAY(SELECT q.name FROM duetime.queues q WHERE q.paused)));
END $$;

-- The gates of these lanes that have jobs due, or may have: those of the hundred jobs of a lane that are due longest, and those the claimer
-- knows. If more are due, the flood of one gate may hide the others: then, on a `walk`, also the next five hundred gates of the lane in
-- their order, numbered, from a place that moves on with each walk. A step reads a page of the index, so not every claim can walk. Of a
-- target that the claimer cannot run, one gate is enough.
CREATE FUNCTION duetime.gates_due(
    queues text[], priorities smallint[], shut text[], horizon timestamptz, targets text[], walk boolean, from_target text, from_gate text,
    known_queues text[], known_priorities smallint[], known_targets text[], known_gates text[])
RETURNS TABLE (place bigint, target text, gate text, step bigint) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    lane record;
    seen bigint;
BEGIN
    FOR lane IN
        SELECT l.place, l.queue, l.priority FROM unnest(queues, priorities) WITH ORDINALITY AS l(queue, priority, place)
        WHERE l.queue <> ALL (shut) AND EXISTS (
            SELECT FROM duetime.jobs j WHERE j.state = 'pending' AND j.gate IS NOT NULL AND j.queue = l.queue AND j.priority = l.priority
                AND j.due_at > '-infinity' AND j.due_at <= horizon OFFSET 0)
    LOOP
        RETURN QUERY SELECT lane.place, j.target, j.gate, NULL::bigint FROM duetime.jobs j
        WHERE j.state = 'pending' AND j.gate IS NOT NULL AND j.queue = lane.queue AND j.priority = lane.priority
            AND j.due_at > '-infinity' AND j.due_at <= horizon
        ORDER BY j.due_at LIMIT 100;
        GET DIAGNOSTICS seen = ROW_COUNT;
        IF seen = 100 AND walk THEN
            RETURN QUERY
            WITH RECURSIVE walk AS (
                (SELECT j.target, j.gate, j.due_at, 1::bigint AS step FROM duetime.jobs j
                WHERE j.state = 'pending' AND j.gate IS NOT NULL AND j.queue = lane.queue AND j.priority = lane.priority
                    AND (j.target, j.gate) > (from_target, from_gate)
                ORDER BY j.target, j.gate, j.due_at LIMIT 1)
                UNION ALL
                SELECT n.target, n.gate, n.due_at, w.step + 1 FROM walk w CROSS JOIN LATERAL (
                    SELECT j.target, j.gate, j.due_at FROM duetime.jobs j
                    WHERE j.state = 'pending' AND j.gate IS NOT NULL AND j.queue = lane.queue AND j.priority = lane.priority
                        AND (j.target, j.gate) > (w.target, CASE WHEN w.target = ANY (targets) THEN w.gate ELSE U&'\+10FFFF' END)
                    ORDER BY j.target, j.gate, j.due_at LIMIT 1) n
                WHERE w.step < 500)
            SELECT lane.place, w.target, w.gate, w.step FROM walk w WHERE w.due_at <= horizon OR w.step = 500;
        ELSIF seen = 100 THEN
            RETURN QUERY SELECT lane.place, k.target, k.gate, NULL::bigint
            FROM unnest(known_queues, known_priorities, known_targets, known_gates) AS k(queue, priority, target, gate)
            WHERE k.queue = lane.queue AND k.priority = lane.priority;
        END IF;
    END LOOP;
END $$;

-- A whole claim where gates or limited queues play a part. Whoever counts what runs has locked the gate's row (the queue's row) before, in
-- a statement of its own: so the count sees all that earlier claimers took. Rows that somebody else has locked are passed over; only if
-- they are all there is, or the claimer is `patient`, they are waited for, and not long. Nobody waits in a circle: rows of new gates are
-- made before any is locked, whoever waits for gates has locked none yet, and all take them in the order of their names.
-- bounded, mosts, rate_counts, rate_periods: what the claimer's own code says about gates, by target. known_*: gates it has seen of late;
-- where none of them has anything to give, the claim walks.
-- Answers the jobs lane by lane, then one row without an id: whether any row was passed over (cancel_requested), whether turns play a part
-- here at all (begun), whether exclusive jobs are due (overlap); and after a walk (attempt) the gates it met and where the next one begins
-- (target, gate).
CREATE FUNCTION duetime.claim_in_turns(
    room bigint, claimer bigint, queues text[], priorities smallint[], lows timestamptz[], prefetch bigint, targets text[], exclusive boolean,
    bounded text[], mosts bigint[], rate_counts bigint[], rate_periods bigint[],
    patient boolean, walk boolean, from_target text, from_gate text, seed bigint,
    known_queues text[], known_priorities smallint[], known_targets text[], known_gates text[])
RETURNS TABLE (
    id uuid, attempt bigint, target text, payload bytea, due_at timestamptz, queue text, priority smallint, fire_time timestamptz,
    failures bigint, losses bigint, cancel_requested boolean, schedule_id uuid, schedule text, overlap text, policies bytea,
    target_spec bytea, checkpoint bytea, tenant text, begun boolean, gate text, seen_lanes bigint[], seen_targets text[], seen_gates text[])
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_mergejoin = off
SET enable_hashjoin = on SET lock_timeout = 500 AS $$
#variable_conflict use_column
DECLARE
    horizon timestamptz := clock_timestamp() + prefetch * interval '1 microsecond';
    moment bigint; -- microseconds: the instant the rates go by
    shut text[] := ARRAY(SELECT q.name FROM duetime.queues q WHERE q.paused); -- queues nothing is taken from
    wanted_room bigint := room;
    in_turns boolean;
    busy boolean := false; -- somebody else is at a queue or gate
    queue_busy boolean := false;
    alone boolean; -- exclusive jobs are due
    wanted text[];
    held text[];
    limits text[]; -- the limited queues, how many more of each may start, and how many have
    vacancies bigint[];
    starts bigint[];
    met_lanes bigint[]; -- gates with jobs that are due: place of the lane, target and gate of each
    met_targets text[];
    met_gates text[];
    steps bigint[];
    free_lanes bigint[]; -- those of them where something may start
    free_targets text[];
    free_gates text[];
    gate_lanes bigint[]; -- and those we have locked, or need not lock
    gate_targets text[];
    gate_names text[];
    lane record;
    limit_at bigint;
    vacant bigint;
    share bigint; -- of the vacancies, for each gate that could fill many
    taken bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM duetime.nodes n WHERE n.id = claimer AND NOT n.dead AND n.lease_until > clock_timestamp()) THEN
        RETURN;
    END IF;

    -- Limited queues: lock, then count.
    SELECT array_agg(q.name) INTO wanted FROM duetime.queues q WHERE q.limited AND NOT q.paused AND q.name = ANY (queues);
    in_turns := wanted IS NOT NULL;
    IF in_turns THEN
        IF patient THEN
            BEGIN
                SELECT array_agg(h.name) INTO held
                FROM (SELECT q.name FROM duetime.queues q WHERE q.name = ANY (wanted) ORDER BY q.name FOR NO KEY UPDATE) h;
            EXCEPTION WHEN lock_not_available THEN
                held := NULL;
            END;
        ELSE
            SELECT array_agg(h.name) INTO held
            FROM (SELECT q.name FROM duetime.queues q WHERE q.name = ANY (wanted) FOR NO KEY UPDATE SKIP LOCKED) h;
        END IF;
        queue_busy := cardinality(held) IS DISTINCT FROM cardinality(wanted);
        shut := shut || ARRAY(SELECT w.name FROM unnest(wanted) AS w(name) WHERE held IS NULL OR w.name <> ALL (held));
        SELECT array_agg(q.name), array_agg(0::bigint), array_agg(least(
                q.most - (SELECT count(*) FROM (SELECT id FROM duetime.nodes UNION ALL SELECT 0) n CROSS JOIN LATERAL ( -- 0: handed over
                    SELECT FROM duetime.jobs r WHERE r.node = n.id AND r.queue = q.name) r),
                duetime.starts_allowed(q.rate_count, q.rate_period, q.spent_until, duetime.micros(clock_timestamp()))))
        INTO limits, starts, vacancies FROM duetime.queues q WHERE q.name = ANY (held);
        wanted := NULL;
    END IF;

    -- Gates: find those where something may start. Full ones are left out before anything is locked, and mostly all are full.
    LOOP
        moment := duetime.micros(clock_timestamp());
        SELECT array_agg(g.place), array_agg(g.target), array_agg(g.gate), array_agg(g.step) INTO met_lanes, met_targets, met_gates, steps
        FROM (SELECT g.place, g.target, g.gate, max(g.step) AS step FROM duetime.gates_due(queues, priorities, shut, horizon, targets, walk,
            from_target, from_gate, known_queues, known_priorities, known_targets, known_gates) g GROUP BY g.place, g.target, g.gate) g;
        EXIT WHEN met_gates IS NULL;
        in_turns := true;
        SELECT array_agg(m.place), array_agg(m.target), array_agg(m.gate), array_agg(DISTINCT m.gate) FILTER (WHERE b.target IS NOT NULL)
        INTO free_lanes, free_targets, free_gates, wanted
        FROM unnest(met_lanes, met_targets, met_gates) AS m(place, target, gate)
        LEFT JOIN unnest(bounded, mosts, rate_counts, rate_periods) AS b(target, most, rate_count, rate_period) ON b.target = m.target
        WHERE m.target = ANY (targets)
            AND (b.most IS NULL OR b.most > (SELECT count(*) FROM (
                SELECT FROM duetime.jobs r WHERE r.gate = m.gate AND r.state = 'running' AND r.gate IS NOT NULL LIMIT b.most) r))
            AND (b.rate_count IS NULL OR duetime.starts_allowed(b.rate_count, b.rate_period,
                (SELECT g.spent_until FROM duetime.gates g WHERE g.name = m.gate), moment) > 0);
        EXIT WHEN walk OR free_gates IS NOT NULL;
        walk := true;
    END LOOP;
    from_target := coalesce(met_targets[array_position(steps, 500::bigint)], '');
    from_gate := coalesce(met_gates[array_position(steps, 500::bigint)], '');

    alone := EXISTS (SELECT FROM unnest(queues, priorities) AS l(queue, priority) CROSS JOIN LATERAL (
        SELECT FROM duetime.jobs j WHERE j.state = 'pending' AND j.overlap IS NOT NULL AND j.queue = l.queue AND j.priority = l.priority
            AND j.due_at <= horizon LIMIT 1) j);
    LOOP
        -- Lock the gates with a limit.
        gate_lanes := free_lanes;
        gate_targets := free_targets;
        gate_names := free_gates;
        busy := queue_busy;
        IF wanted IS NOT NULL THEN
            held := NULL;
            IF patient THEN
                BEGIN
                    SELECT array_agg(h.name) INTO held
                    FROM (SELECT g.name FROM duetime.gates g WHERE g.name = ANY (wanted) ORDER BY g.name FOR NO KEY UPDATE) h;
                EXCEPTION WHEN lock_not_available THEN
                    held := NULL;
                END;
            ELSE
                INSERT INTO duetime.gates (name)
                SELECT w.name FROM unnest(wanted) AS w(name)
                WHERE NOT EXISTS (SELECT FROM duetime.gates g WHERE g.name = w.name OFFSET 0) ORDER BY w.name ON CONFLICT DO NOTHING;
                SELECT array_agg(h.name) INTO held
                FROM (SELECT g.name FROM duetime.gates g WHERE g.name = ANY (wanted) FOR NO KEY UPDATE SKIP LOCKED) h;
            END IF;
            IF cardinality(held) IS DISTINCT FROM cardinality(wanted) THEN
                busy := true;
                SELECT array_agg(c.place), array_agg(c.target), array_agg(c.gate) INTO gate_lanes, gate_targets, gate_names
                FROM unnest(gate_lanes, gate_targets, gate_names) AS c(place, target, gate)
                LEFT JOIN unnest(held) AS h(name) ON h.name = c.gate
                WHERE h.name IS NOT NULL OR c.target <> ALL (bounded);
            END IF;
            moment := duetime.micros(clock_timestamp());
        END IF;

        FOR lane IN
            SELECT l.place, l.queue, l.priority, CASE WHEN l.queue = ANY (limits) THEN '-infinity' ELSE l.low END AS low, (
                SELECT count(*) FROM unnest(gate_lanes, gate_targets) AS c(place, target)
                LEFT JOIN unnest(bounded, mosts) AS b(target, most) ON b.target = c.target
                WHERE c.place = l.place AND (b.most IS NULL OR b.most > 20)) AS wide
            FROM unnest(queues, priorities, lows) WITH ORDINALITY AS l(queue, priority, low, place)
            WHERE l.queue <> ALL (shut) AND (l.place = ANY (gate_lanes)
                OR EXISTS (SELECT FROM duetime.jobs j WHERE j.state = 'pending' AND j.overlap IS NULL AND j.gate IS NULL AND j.queue = l.queue
                    AND j.priority = l.priority AND j.due_at >= CASE WHEN l.queue = ANY (limits) THEN '-infinity' ELSE l.low END
                    AND j.due_at <= horizon OFFSET 0)
                OR alone AND EXISTS (SELECT FROM duetime.jobs j WHERE j.state = 'pending' AND j.overlap IS NOT NULL AND j.queue = l.queue
                    AND j.priority = l.priority AND j.due_at <= horizon OFFSET 0))
            ORDER BY l.place
        LOOP
            EXIT WHEN room <= 0;
            limit_at := array_position(limits, lane.queue);
            vacant := least(room, vacancies[limit_at]);
            share := ceil(vacant / (lane.wide + 1.0));
            WHILE vacant > 0 LOOP
                RETURN QUERY
                WITH may AS MATERIALIZED ( -- the lane's gates, how many of each may start, and what one start costs
                        SELECT c.target, c.gate, coalesce(b.most <= 20, false) AS narrow,
                            CASE WHEN b.rate_count IS NOT NULL THEN greatest(1, b.rate_period / b.rate_count) END AS cost,
                            least(vacant,
                                b.most - CASE WHEN b.most IS NOT NULL THEN (SELECT count(*) FROM (SELECT FROM duetime.jobs r
                                    WHERE r.gate = c.gate AND r.state = 'running' AND r.gate IS NOT NULL LIMIT b.most) r) END,
                                CASE WHEN b.rate_count IS NOT NULL THEN duetime.starts_allowed(b.rate_count, b.rate_period,
                                    (SELECT g.spent_until FROM duetime.gates g WHERE g.name = c.gate), moment) END) AS most
                        FROM unnest(gate_lanes, gate_targets, gate_names) AS c(place, target, gate)
                        LEFT JOIN unnest(bounded, mosts, rate_counts, rate_periods) AS b(target, most, rate_count, rate_period)
                            ON b.target = c.target
                        WHERE c.place = lane.place),
                    due AS MATERIALIZED (
                        SELECT j.tid, j.id, j.due_at, m.gate, m.most, m.cost FROM may m CROSS JOIN LATERAL (
                            SELECT j.ctid AS tid, j.id, j.due_at FROM duetime.jobs j
                            WHERE j.state = 'pending' AND j.gate IS NOT NULL AND j.queue = lane.queue AND j.priority = lane.priority
                                AND j.target = m.target AND j.gate = m.gate AND j.due_at <= horizon
                                AND (j.overlap IS NULL OR exclusive AND duetime.stands_alone(j.id, j.schedule_id, j.attempt, j.fire_time,
                                    queues, priorities, targets, horizon))
                            ORDER BY j.due_at LIMIT CASE WHEN m.narrow THEN m.most ELSE least(m.most, share) END FOR UPDATE SKIP LOCKED) j
                        WHERE m.most > 0
                        UNION ALL
                        SELECT j.tid, j.id, j.due_at, NULL, NULL, NULL FROM (
                            SELECT j.ctid AS tid, j.id, j.due_at FROM duetime.jobs j
                            WHERE j.state = 'pending' AND j.overlap IS NULL AND j.gate IS NULL AND j.queue = lane.queue
                                AND j.priority = lane.priority AND j.due_at >= lane.low AND j.due_at <= horizon AND j.target = ANY (targets)
                            ORDER BY j.due_at LIMIT share FOR UPDATE SKIP LOCKED) j
                        UNION ALL
                        SELECT j.tid, j.id, j.due_at, NULL, NULL, NULL FROM (
                            SELECT j.ctid AS tid, j.id, j.due_at FROM duetime.jobs j
                            WHERE exclusive AND alone AND j.state = 'pending' AND j.overlap IS NOT NULL AND j.gate IS NULL
                                AND j.queue = lane.queue AND j.priority = lane.priority AND j.due_at <= horizon AND j.target = ANY (targets)
                                AND duetime.stands_alone(j.id, j.schedule_id, j.attempt, j.fire_time, queues, priorities, targets, horizon)
                            ORDER BY j.due_at LIMIT share FOR UPDATE SKIP LOCKED) j),
                    turns AS (
                        SELECT d.tid, d.gate, d.most, d.cost, row_number() OVER (PARTITION BY d.gate ORDER BY d.due_at, d.id) AS turn,
                            hashtextextended(coalesce(d.gate, ''), seed) AS lot
                        FROM due d),
                    chosen AS MATERIALIZED (SELECT * FROM turns t WHERE t.most IS NULL OR t.turn <= t.most ORDER BY t.turn, t.lot LIMIT vacant),
                    spent AS (
                        UPDATE duetime.gates g SET spent_until = greatest(g.spent_until, moment) + c.cost
                        FROM (SELECT c.gate, sum(c.cost) AS cost FROM chosen c WHERE c.cost IS NOT NULL GROUP BY c.gate) c
                        WHERE g.name = c.gate)
                UPDATE duetime.jobs SET state = 'running', attempt = attempt + 1, node = claimer, claimed_at = statement_timestamp()
                WHERE ctid = ANY (ARRAY(SELECT c.tid FROM chosen c))
                RETURNING id, attempt, target, payload, due_at, queue, priority, fire_time, failures, losses, cancel_requested, schedule_id,
                    schedule, overlap, policies, target_spec, checkpoint, tenant, begun, gate, NULL::bigint[], NULL::text[], NULL::text[];
                GET DIAGNOSTICS taken = ROW_COUNT;
                room := room - taken;
                IF limit_at IS NOT NULL THEN
                    vacancies[limit_at] := vacancies[limit_at] - taken;
                    starts[limit_at] := starts[limit_at] + taken;
                END IF;
                -- Where each gate could give no more than its share, there may be more of one than of another.
                EXIT WHEN taken = 0 OR share >= vacant;
                vacant := vacant - taken;
                share := 4 * share;
            END LOOP;
        END LOOP;
        -- Whoever is at the gates may have counted before their last jobs ended, and nobody else would come for what it leaves.
        EXIT WHEN patient OR room < wanted_room OR wanted IS NULL OR held IS NOT NULL;
        patient := true;
    END LOOP;

    IF limits IS NOT NULL THEN
        UPDATE duetime.queues q
        SET spent_until = greatest(q.spent_until, moment) + l.starts * greatest(1, q.rate_period / q.rate_count)
        FROM unnest(limits, starts) AS l(name, starts) WHERE q.name = l.name AND q.rate_count IS NOT NULL AND l.starts > 0;
    END IF;
    target := from_target;
    gate := from_gate;
    cancel_requested := busy;
    begun := in_turns;
    overlap := CASE WHEN alone THEN '' END;
    IF walk THEN
        attempt := 1;
        seen_lanes := met_lanes;
        seen_targets := met_targets;
        seen_gates := met_gates;
    END IF;
    RETURN NEXT;
END $$;

-- When a rate allows the next of the jobs that are due in these lanes and held up by it: of the gates' rates, then of the queues'.
CREATE FUNCTION duetime.next_start(
    queues text[], priorities smallint[], horizon timestamptz, targets text[], bounded text[], rate_counts bigint[], rate_periods bigint[])
RETURNS timestamptz LANGUAGE plpgsql STABLE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
    moment bigint := duetime.micros(clock_timestamp());
    free_at bigint;
BEGIN
    SELECT min(f.free_at) INTO free_at FROM (
        SELECT (SELECT g.spent_until + b.cost - b.rate_period FROM duetime.gates g
            WHERE g.spent_until > 0 AND g.spent_until > moment + b.rate_period - b.cost
                AND EXISTS (SELECT FROM unnest(queues, priorities) AS l(queue, priority) CROSS JOIN LATERAL (
                    SELECT FROM duetime.jobs j WHERE j.state = 'pending' AND j.gate IS NOT NULL AND j.queue = l.queue
                        AND j.priority = l.priority AND j.target = b.target AND j.gate = g.name AND j.due_at <= horizon LIMIT 1) j)
            ORDER BY g.spent_until LIMIT 1) AS free_at
        FROM (SELECT *, greatest(1, rate_period / rate_count) AS cost
            FROM unnest(bounded, rate_counts, rate_periods) AS b(target, rate_count, rate_period)) b
        WHERE b.rate_count IS NOT NULL AND b.target = ANY (targets)
        UNION ALL
        SELECT q.spent_until + greatest(1, q.rate_period / q.rate_count) - q.rate_period FROM duetime.queues q
        WHERE q.limited AND NOT q.paused AND q.name = ANY (queues)
            AND duetime.starts_allowed(q.rate_count, q.rate_period, q.spent_until, moment) = 0
            AND EXISTS (SELECT FROM unnest(queues, priorities) AS l(queue, priority) WHERE l.queue = q.name AND (
                EXISTS (SELECT FROM duetime.jobs j WHERE j.state = 'pending' AND j.overlap IS NULL AND j.gate IS NULL
                    AND j.queue = l.queue AND j.priority = l.priority AND j.due_at <= horizon AND j.target = ANY (targets) OFFSET 0)
                OR EXISTS (SELECT FROM duetime.jobs j WHERE j.state = 'pending' AND j.overlap IS NOT NULL
                    AND j.queue = l.queue AND j.priority = l.priority AND j.due_at <= horizon AND j.target = ANY (targets) OFFSET 0)
                OR EXISTS (SELECT FROM duetime.jobs j WHERE j.state = 'pending' AND j.gate IS NOT NULL
                    AND j.queue = l.queue AND j.priority = l.priority AND j.due_at > '-infinity' AND j.due_at <= horizon
                    AND j.target = ANY (targets) OFFSET 0)))) f;
    RETURN 'epoch'::timestamptz + free_at * interval '1 microsecond';
END $$;
