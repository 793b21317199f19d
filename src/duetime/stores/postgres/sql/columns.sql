-- Columns that go together. In a statement {draft} stands for all of them, {j.draft} for those of the table called j there.

-- columns: planned
-- The columns that a fire of a schedule and a caller's draft have in common.
id, tenant, schedule_id, schedule, fire_time, due_at, queue, priority, overlap, target, target_spec, payload, policies, owner, labels

-- columns: draft
-- In the order of the fields of model.job.JobDraft.
{planned}, unique_key, retry_of, limit_key

-- columns: progressed
-- Set while the job is live, kept in the history.
node, cancel_requested, checkpoint, progress, created_at, claimed_at

-- columns: claimed
-- In the order of the fields of model.job.Claimed.
id, attempt, target, payload, due_at, queue, priority, fire_time, failures, losses, cancel_requested, schedule_id, schedule, overlap, policies,
target_spec, checkpoint, tenant, begun, limit_key, permit

-- columns: schedule
-- The columns of a schedule that its author states.
tenant, name, definition, target, target_spec, payload, policies, queue, priority, overlap, jitter, start_at, end_at, max_runs, owner, labels,
limit_key, next_fire_time, paused, pause_note

-- columns: schedule_arrays
$1::text[], $2::text[], $3::bytea[], $4::text[], $5::bytea[], $6::bytea[], $7::bytea[], $8::text[], $9::smallint[], $10::text[], $11::text[],
$12::timestamptz[], $13::timestamptz[], $14::bigint[], $15::text[], $16::bytea[], $17::text[], $18::timestamptz[], $19::boolean[], $20::text[]
