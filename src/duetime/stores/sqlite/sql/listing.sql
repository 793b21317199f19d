-- One listing is `list_live` or `list_past`, then the conditions that apply, then `list_order`. Counting is the same with `count_`.

-- name: count_limit
LIMIT :limit);

-- name: list_if_states
AND state IN (SELECT value FROM json_each(:states));

-- name: list_if_running
-- The index of nodes finds them: running jobs are few among the live.
AND state = 'running' AND id IN (SELECT r.id FROM jobs AS r WHERE r.node IS NOT NULL);

-- name: list_if_dead
AND state = 'dead';

-- name: list_if_scheduled
AND schedule IS NOT NULL;

-- name: list_if_undisposed
AND state = 'dead' AND disposition IS NULL;

-- name: list_if_label
AND labels IS NOT NULL AND has_label(labels, :label_key, :label_value);

-- name: list_if_error
AND error IS NOT NULL AND instr(folded(error), folded(:error)) > 0;

-- name: list_if_error_group
AND error_group(coalesce(error, '')) = :error_group;

-- name: list_if_payload
AND has_field(payload, :payload_path, :payload_value);
