-- One listing is `list_live` or `list_past`, then the conditions that apply, then `list_order`. Counting is the same with `count_`.

-- name: list_live
SELECT {live} FROM jobs WHERE tenant = :tenant;

-- name: count_live
SELECT count(*) FROM (SELECT 1 FROM jobs WHERE tenant = :tenant;

-- name: count_past
SELECT count(*) FROM (SELECT 1 FROM history WHERE tenant = :tenant;

-- name: count_limit
LIMIT :limit);

-- name: list_past
SELECT {past} FROM history WHERE tenant = :tenant;

-- name: list_if_states
AND state IN (SELECT value FROM json_each(:states));

-- name: list_if_running
-- The index of nodes finds them: running jobs are few among the live.
AND state = 'running' AND id IN (SELECT r.id FROM jobs AS r WHERE r.node IS NOT NULL);

-- name: list_if_dead
AND state = 'dead';

-- name: list_if_undisposed
AND state = 'dead' AND disposition IS NULL;

-- name: list_if_due_after
AND due_at >= :due_after;

-- name: list_if_due_before
AND due_at < :due_before;

-- name: list_if_fire_after
AND fire_time >= :fire_after;

-- name: list_if_fire_before
AND fire_time < :fire_before;

-- name: list_if_label
AND labels IS NOT NULL AND has_label(labels, :label_key, :label_value);

-- name: list_if_error
AND error IS NOT NULL AND instr(folded(error), folded(:error)) > 0;

-- name: list_if_error_group
AND error_group(coalesce(error, '')) = :error_group;

-- name: list_if_payload
AND has_field(payload, :payload_path, :payload_value);

-- name: list_if_before
-- The first comparison lets the index begin there; the second cuts among equal fire times.
AND fire_time <= :before_time AND (fire_time < :before_time OR id < :before_id);

-- name: list_order
ORDER BY fire_time DESC, id DESC LIMIT :limit;
