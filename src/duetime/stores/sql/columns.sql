-- Columns that go together. In a statement {draft} stands for all of them, {j.draft} for those of the table called j there.

-- columns: planned
-- Given by a schedule as well as by a caller.
id, tenant, schedule_id, schedule, fire_time, due_at, queue, priority, overlap, target, target_spec, payload, policies, owner, labels

-- columns: draft
-- In the order of model.job.JobDraft.
{planned}, unique_key, retry_of, limit_key

-- columns: counts
state, attempt, failures, losses

-- columns: lived
node, cancel_requested, checkpoint, progress, created_at, claimed_at

-- columns: live
-- In the order of model.job.Job, from `jobs`.
{draft}, {counts}, {lived}, NULL, NULL, NULL, error, NULL

-- columns: past
-- The same from `history`.
{draft}, {counts}, {lived}, started_at, finished_at, result, error, disposition

-- columns: claimed
-- In the order of model.job.Claimed, after id and attempt, up to `begun`.
target, payload, due_at, queue, priority, fire_time, failures, losses, cancel_requested, schedule_id, schedule, overlap, policies, target_spec,
checkpoint, tenant, begun

-- columns: candidate
-- In the order of model.permits.Candidate.
id, queue, priority, due_at, fire_time, attempt, target, limit_key, schedule_id, overlap, tenant

-- columns: definition
-- In the order of model.schedule.ScheduleDraft.
id, tenant, name, fires_when, target, target_spec, payload, policies, queue, priority, overlap, missed, jitter, start_at, end_at, max_runs,
owner, labels, limit_key

-- columns: schedule
-- In the order of model.schedule.Schedule.
{definition}, id, version, segment, paused, pause_note, next_fire_time, last_fire_time, runs, created_at, updated_at
