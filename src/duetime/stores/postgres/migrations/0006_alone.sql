-- Whether an exclusive job may start, found by its schedule whatever the statistics say: what else is asked of the older ones stands
-- outside the look into the index, or the planner might read all exclusive jobs for each of them.
CREATE OR REPLACE FUNCTION duetime.stands_alone(
    job uuid, its_schedule uuid, its_attempt bigint, its_fire_time timestamptz,
    queues text[], priorities smallint[], targets text[], horizon timestamptz)
RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN NOT EXISTS (SELECT FROM duetime.jobs s WHERE s.schedule_id = its_schedule AND s.attempt > 0 AND s.id <> job OFFSET 0)
        AND (its_attempt > 0 OR NOT EXISTS (
            SELECT FROM (
                SELECT * FROM duetime.jobs o
                WHERE o.schedule_id = its_schedule AND o.attempt = 0 AND o.fire_time <= its_fire_time
                    AND (o.fire_time, o.id) < (its_fire_time, job) OFFSET 0) o
            WHERE o.state = 'pending' AND o.overlap IS NOT NULL AND o.target = ANY (targets) AND o.due_at <= horizon
                AND EXISTS (SELECT FROM unnest(queues, priorities) AS m(queue, priority)
                    WHERE m.queue = o.queue AND m.priority = o.priority) OFFSET 0));
END $$;
