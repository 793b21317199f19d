-- Claims ahead: a node that holds all that runs of a gate may hold more of it than may run at once, and starts them one after the other
-- without coming back for each. The function of the version before stays for nodes that still run it: it finds such a gate full.

-- A whole claim where gates or limited queues play a part. Whoever counts what runs has locked the gate's row (the queue's row) before, in
-- a statement of its own: so the count sees all that earlier claimers took. Rows that somebody else has locked are passed over; only if
-- they are all there is, or the claimer is `patient`, they are waited for, and not long. Nobody waits in a circle: rows of new gates are
-- made before any is locked, whoever waits for gates has locked none yet, and all take them in the order of their names.
-- bounded, mosts, aheads, rate_counts, rate_periods: what the claimer's own code says about gates, by target. Only what is due is taken
-- ahead, and nothing of limited queues, whose places it would hold. Where some is, gates have their turns `most` jobs at a time: a gate that
-- two nodes share gives nobody anything ahead. known_*: gates it has seen of late;
-- where none of them has anything to give, the claim walks.
-- Answers the jobs lane by lane, then one row without an id: whether any row was passed over (cancel_requested), whether turns play a part
-- here at all (begun), whether exclusive jobs are due (overlap); and after a walk (attempt) the gates it met and where the next one begins
-- (target, gate).
CREATE FUNCTION duetime.claim_in_turns(
    room bigint, claimer bigint, queues text[], priorities smallint[], lows timestamptz[], prefetch bigint, targets text[], exclusive boolean,
    bounded text[], mosts bigint[], aheads bigint[], rate_counts bigint[], rate_periods bigint[], fresh bigint,
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
    part bigint; -- and for each gate there is
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
        LEFT JOIN unnest(bounded, mosts, aheads, rate_counts, rate_periods) AS b(target, most, ahead, rate_count, rate_period)
            ON b.target = m.target
        WHERE m.target = ANY (targets)
            AND (b.most IS NULL OR (
                SELECT count(*) < b.most + CASE WHEN queues[m.place] = ANY (limits) OR bool_or(r.node <> claimer) THEN 0 ELSE b.ahead END FROM (
                    SELECT r.node FROM duetime.jobs r
                    WHERE r.gate = m.gate AND r.state = 'running' AND r.gate IS NOT NULL LIMIT b.most + b.ahead) r))
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
            SELECT l.place, l.queue, l.priority, CASE WHEN l.queue = ANY (limits) THEN '-infinity' ELSE l.low END AS low, w.wide, w.gates
            FROM unnest(queues, priorities, lows) WITH ORDINALITY AS l(queue, priority, low, place)
            CROSS JOIN LATERAL (
                SELECT count(*) FILTER (WHERE b.most IS NULL OR b.most > 20) AS wide, count(*) AS gates
                FROM unnest(gate_lanes, gate_targets) AS c(place, target)
                LEFT JOIN unnest(bounded, mosts) AS b(target, most) ON b.target = c.target
                WHERE c.place = l.place) w
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
            part := ceil(vacant / (lane.gates + 1.0));
            WHILE vacant > 0 LOOP
                RETURN QUERY
                WITH free AS ( -- the lane's gates, how many of each may start, and what one start costs
                        SELECT c.target, c.gate, coalesce(b.most <= 20, false) AS narrow, CASE WHEN b.ahead > 0 THEN b.most ELSE 1 END AS at_a_time,
                            p.at_once, coalesce(p.mine, false) AS mine,
                            CASE WHEN b.rate_count IS NOT NULL THEN greatest(1, b.rate_period / b.rate_count) END AS cost,
                            least(vacant,
                                p.in_all,
                                CASE WHEN b.rate_count IS NOT NULL THEN duetime.starts_allowed(b.rate_count, b.rate_period,
                                    (SELECT g.spent_until FROM duetime.gates g WHERE g.name = c.gate), moment) END) AS most
                        FROM unnest(gate_lanes, gate_targets, gate_names) AS c(place, target, gate)
                        LEFT JOIN unnest(bounded, mosts, aheads, rate_counts, rate_periods)
                            AS b(target, most, ahead, rate_count, rate_period) ON b.target = c.target
                        LEFT JOIN LATERAL ( -- by itself a node has `most` and `ahead`, beside others `most` with them together
                            SELECT b.most - count(*) AS at_once, bool_or(r.node = claimer) AS mine,
                                b.most - count(*) + CASE WHEN limit_at IS NOT NULL OR bool_or(r.node <> claimer) THEN 0 ELSE b.ahead END AS in_all
                            FROM (SELECT r.node FROM duetime.jobs r
                                WHERE r.gate = c.gate AND r.state = 'running' AND r.gate IS NOT NULL LIMIT coalesce(b.most + b.ahead, 0)) r) p
                            ON b.most IS NOT NULL
                        WHERE c.place = lane.place),
                    may AS MATERIALIZED (
                        SELECT * FROM (
                            SELECT f.*, sum(f.at_once) OVER (PARTITION BY f.mine ORDER BY hashtextextended(f.gate, seed) ROWS UNBOUNDED PRECEDING)
                                AS up_to FROM free f) f
                        WHERE fresh IS NULL OR f.mine OR f.at_once IS NULL OR f.up_to - f.at_once < fresh),
                    due AS MATERIALIZED (
                        SELECT j.tid, j.id, j.due_at, m.gate, m.most, m.at_once, m.cost, m.at_a_time, m.mine FROM may m CROSS JOIN LATERAL (
                            SELECT j.ctid AS tid, j.id, j.due_at FROM duetime.jobs j
                            WHERE j.state = 'pending' AND j.gate IS NOT NULL AND j.queue = lane.queue AND j.priority = lane.priority
                                AND j.target = m.target AND j.gate = m.gate AND j.due_at <= horizon
                                AND (j.overlap IS NULL OR exclusive AND duetime.stands_alone(j.id, j.schedule_id, j.attempt, j.fire_time,
                                    queues, priorities, targets, horizon))
                            ORDER BY j.due_at LIMIT CASE WHEN m.mine THEN m.most WHEN m.narrow THEN least(m.most, greatest(m.at_once, m.at_a_time + part))
                                ELSE least(m.most, share) END FOR UPDATE SKIP LOCKED) j
                        WHERE m.most > 0
                        UNION ALL
                        SELECT j.tid, j.id, j.due_at, NULL, NULL, NULL, NULL, NULL, false FROM (
                            SELECT j.ctid AS tid, j.id, j.due_at FROM duetime.jobs j
                            WHERE j.state = 'pending' AND j.overlap IS NULL AND j.gate IS NULL AND j.queue = lane.queue
                                AND j.priority = lane.priority AND j.due_at >= lane.low AND j.due_at <= horizon AND j.target = ANY (targets)
                            ORDER BY j.due_at LIMIT share FOR UPDATE SKIP LOCKED) j
                        UNION ALL
                        SELECT j.tid, j.id, j.due_at, NULL, NULL, NULL, NULL, NULL, false FROM (
                            SELECT j.ctid AS tid, j.id, j.due_at FROM duetime.jobs j
                            WHERE exclusive AND alone AND j.state = 'pending' AND j.overlap IS NOT NULL AND j.gate IS NULL
                                AND j.queue = lane.queue AND j.priority = lane.priority AND j.due_at <= horizon AND j.target = ANY (targets)
                                AND duetime.stands_alone(j.id, j.schedule_id, j.attempt, j.fire_time, queues, priorities, targets, horizon)
                            ORDER BY j.due_at LIMIT share FOR UPDATE SKIP LOCKED) j),
                    turns AS (
                        SELECT d.*, row_number() OVER (PARTITION BY d.gate ORDER BY d.due_at, d.id) AS number,
                            hashtextextended(coalesce(d.gate, ''), seed) AS lot
                        FROM due d),
                    chosen AS MATERIALIZED (
                        SELECT * FROM turns t
                        WHERE t.most IS NULL OR t.number <= t.most AND (t.number <= t.at_once OR t.at_once IS NULL OR t.due_at <= clock_timestamp())
                        ORDER BY t.mine, CASE WHEN t.mine THEN hashtextextended(t.gate, claimer) END, (t.number - 1) / coalesce(t.at_a_time, (SELECT max(m.at_a_time) FROM may m), 1), t.lot LIMIT vacant),
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
                fresh := greatest(0, fresh - taken);
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
