-- The event log.

-- name: add_events
-- $1 key of the lock, $2 events. The lock is taken before the first id is given, and released when the last id is visible to all.
WITH lock AS MATERIALIZED (SELECT pg_advisory_xact_lock($1::bigint)),
    added AS (INSERT INTO duetime.events (event)
        SELECT x.event FROM lock CROSS JOIN (SELECT * FROM unnest($2::bytea[]) WITH ORDINALITY AS x(event, place) ORDER BY place) x RETURNING id)
SELECT max(id) FROM added;

-- name: list_events
-- $1 after which id, $2 how many. The last row has the id of the newest event and no event.
SELECT * FROM (SELECT id, event FROM duetime.events WHERE id > $1 ORDER BY id LIMIT $2) page
UNION ALL SELECT coalesce(max(id), 0), NULL FROM duetime.events;

-- name: trim_events
-- $1 up to which id. The newest stays, however old: its id is the last id.
DELETE FROM duetime.events WHERE id <= $1 AND id < (SELECT max(id) FROM duetime.events);

-- name: last_old_event
-- $1 how old in microseconds. Ids and instants rise together.
SELECT coalesce((SELECT id FROM duetime.events WHERE at < clock_timestamp() - $1::bigint * interval '1 microsecond' ORDER BY id DESC LIMIT 1), 0);
