-- One listing is `list_live` or `list_past`, then the conditions that apply, then `list_order`. Counting is the same with `count_`.

-- name: list_live
SELECT {live} FROM {jobs} WHERE tenant = :tenant;

-- name: count_live
SELECT count(*) FROM (SELECT 1 FROM {jobs} WHERE tenant = :tenant;

-- name: count_past
SELECT count(*) FROM (SELECT 1 FROM {history} WHERE tenant = :tenant;

-- name: list_past
SELECT {past} FROM {history} WHERE tenant = :tenant;

-- name: list_if_due_after
AND due_at >= :due_after;

-- name: list_if_due_before
AND due_at < :due_before;

-- name: list_if_fire_after
AND fire_time >= :fire_after;

-- name: list_if_fire_before
AND fire_time < :fire_before;

-- name: list_if_before
-- The first comparison lets the index begin there; the second cuts among equal fire times.
AND fire_time <= :before_time AND (fire_time < :before_time OR id < :before_id);

-- name: list_order
ORDER BY fire_time DESC, id DESC LIMIT :limit;
