-- Columns that go together. In a statement {draft} stands for all of them, {j.draft} for those of the table called j there.

-- columns: planned
-- What a schedule and a caller alike say of a job.
id, tenant, schedule_id, schedule, fire_time, due_at, queue, priority, overlap, target, target_spec, payload, policies, owner, labels

-- columns: draft
-- In the order of the fields of model.job.JobDraft.
{planned}, unique_key, retry_of, gate

-- columns: lived
-- What comes about while it lives.
node, cancel_requested, checkpoint, progress, created_at, claimed_at

-- columns: claimed
-- In the order of the fields of model.job.Claimed.
id, attempt, target, payload, due_at, queue, priority, fire_time, failures, losses, cancel_requested, schedule_id, schedule, overlap, policies,
target_spec, checkpoint, tenant, begun, gate
