// Written by tools/ui_types.py from the OpenAPI document. Change the API, then run `make ui`.

export type AgentHealthOut = { status: string; timestamp: string; services: ServicesOut };

export type AgentScheduleIn = { name: string; cronExpression: string; agentId: string; agentUrl: string; httpMethod?: string; headers?: { [key: string]: string }; payload?: unknown; retryPolicy?: RetryPolicyIn; enabled?: boolean };

export type AgentScheduleOut = { id: string; name: string; cronExpression: string; agentId: string; agentUrl: string; httpMethod: string; headers: { [key: string]: string }; payload: unknown; retryPolicy: RetryPolicyOut; enabled: boolean; createdAt: string; updatedAt: string };

export type AgentSchedulePatchIn = { name?: string; cronExpression?: string; agentId?: string; agentUrl?: string; httpMethod?: string; headers?: { [key: string]: string }; payload?: unknown; retryPolicy?: RetryPolicyIn; enabled?: boolean };

export type AttemptOut = { attempt: number; ending: Ending; node: number | null; started_at: string | null; finished_at: string; error: string | null };

export type BackfillIn = { from: string; to?: string; rate?: string; limit?: number };

export type BackfillOut = { added: number; existing: number; next_from: string | null };

export type BatchJobIn = { target: { type: "task"; name: string } | { type: "http"; url: string; method?: string; headers?: { [key: string]: string }; secret_headers?: { [key: string]: string }; signing_secret?: unknown; body?: "json" | "raw"; timeout?: string; success?: Array<number | string>; async?: boolean }; payload?: unknown; queue?: string; priority?: number; timeout?: string; retry?: RetryIn; delivery?: "at_least_once" | "at_most_once"; owner?: string; labels?: { [key: string]: string }; at?: string; delay?: string; unique_key?: string };

export type BatchOut = { ids: Array<string>; created: number };

export type BucketOut = { at: string; count: number };

export type BulkFailureOut = { id: string; code: string; detail: string };

export type BulkOut = { matched: number; at_least: boolean; done: number; failed: Array<BulkFailureOut>; next_cursor: string | null };

export type CalendarOut = { from: string; to: string; bucket: string; buckets: Array<BucketOut>; complete: boolean; note: string | null };

export type Change = "created" | "replaced" | "paused" | "resumed" | "removed";

export type CompleteIn = { token: string; result?: unknown };

export type CreatedKeyOut = { prefix: string; name: string; scopes: Array<"read" | "submit" | "manage" | "admin">; tenant: string; created_at: string; expires_at: string | null; last_used_at: string | null; revoked_at: string | null; rate: string | null; key: string };

export type DeadGroupOut = { error: string; target: string; count: number; oldest: string; newest: string; sample: string };

export type DeadGroupsOut = { items: Array<DeadGroupOut>; complete: boolean };

export type DifferenceOut = { field: string; before: unknown; after: unknown };

export type Ending = "succeeded" | "failed" | "timed_out" | "cancelled" | "released" | "handed_over" | "snoozed" | "lost";

export type ExecutionOut = { id: string; scheduleId: string; fireTime: string; status: "PENDING" | "RUNNING" | "RETRYING" | "SUCCESS" | "FAILED" | "CANCELLED" | "SKIPPED"; attempts: number; startedAt: string | null; completedAt: string | null; error: string | null; response: unknown };

export type FailIn = { token: string; error: string; retry?: boolean };

export type FailingOut = { target: string; failed: number; last_error: string; sample: string };

export type FieldError = { field: string; message: string };

export type FiresOut = { items: Array<duetime__api__v1__calendar__FireOut>; next_cursor: string | null };

export type HealthOut = { status: string; version: string };

export type HeartbeatIn = { token: string; progress?: ProgressIn; checkpoint?: unknown };

export type JobBatchIn = { jobs: Array<BatchJobIn> };

export type JobBulkIn = { ids?: Array<string>; dry_run?: boolean; cursor?: string; action: "cancel" | "retry" | "run" | "discard"; filter?: JobFilterIn };

export type JobFilterIn = { state?: "pending" | "queued" | "running" | "succeeded" | "dead" | "cancelled" | "skipped" | null; queue?: string | null; owner?: string | null; schedule?: string | null; label?: string | null; target?: string | null; due_after?: string | null; due_before?: string | null; error?: string | null };

export type JobOut = { id: string; state: State; target: { type: string; [key: string]: unknown }; schedule: string | null; fire_time: string; due_at: string; queue: string; priority: number; attempt: number; failures: number; node: number | null; owner: string | null; labels: { [key: string]: string }; unique_key: string | null; retry_of: string | null; cancel_requested: boolean; created_at: string; claimed_at: string | null; started_at: string | null; finished_at: string | null; error: string | null; disposition: string | null; payload: unknown; timeout: string | null; retry: { [key: string]: unknown } | null; delivery: "at_least_once" | "at_most_once"; losses: number; checkpoint: unknown; progress: unknown; result: unknown; attempts: Array<AttemptOut> };

export type JobPageOut = { items: Array<JobSummaryOut>; next_cursor: string | null };

export type JobPatchIn = { at?: string; delay?: string; priority?: number };

export type JobSummaryOut = { id: string; state: State; target: { type: string; [key: string]: unknown }; schedule: string | null; fire_time: string; due_at: string; queue: string; priority: number; attempt: number; failures: number; node: number | null; owner: string | null; labels: { [key: string]: string }; unique_key: string | null; retry_of: string | null; cancel_requested: boolean; created_at: string; claimed_at: string | null; started_at: string | null; finished_at: string | null; error: string | null; disposition: string | null };

export type KeyOut = { prefix: string; name: string; scopes: Array<"read" | "submit" | "manage" | "admin">; tenant: string; created_at: string; expires_at: string | null; last_used_at: string | null; revoked_at: string | null; rate: string | null };

export type KeyPageOut = { items: Array<KeyOut>; next_cursor: string | null };

export type LeaseOut = { name: string; holder: number | null; token: number; expires_at: string | null };

export type LeasesOut = { items: Array<LeaseOut>; next_cursor: string | null };

export type LiveOut = { pending: number; due: number; running: number; dead: number };

export type MeOut = { tenant: string; scopes: Array<"read" | "submit" | "manage" | "admin">; key: string | null; local: boolean; version: string; now: string; expires_at: string | null };

export type MissedIn = { policy?: "latest" | "all" | "skip"; within?: string; max?: number };

export type MoveOut = { from: string; to: string };

export type NewJobIn = { target: { type: "task"; name: string } | { type: "http"; url: string; method?: string; headers?: { [key: string]: string }; secret_headers?: { [key: string]: string }; signing_secret?: unknown; body?: "json" | "raw"; timeout?: string; success?: Array<number | string>; async?: boolean }; payload?: unknown; queue?: string; priority?: number; timeout?: string; retry?: RetryIn; delivery?: "at_least_once" | "at_most_once"; owner?: string; labels?: { [key: string]: string }; at?: string; delay?: string; unique_key?: string; on_conflict?: "skip" | "replace" | "reschedule" };

export type NewKeyIn = { name: string; scopes: Array<"read" | "submit" | "manage" | "admin">; expires_in?: string; tenant?: string; rate?: string };

export type NewScheduleIn = { target: { type: "task"; name: string } | { type: "http"; url: string; method?: string; headers?: { [key: string]: string }; secret_headers?: { [key: string]: string }; signing_secret?: unknown; body?: "json" | "raw"; timeout?: string; success?: Array<number | string>; async?: boolean }; payload?: unknown; queue?: string; priority?: number; timeout?: string; retry?: RetryIn; delivery?: "at_least_once" | "at_most_once"; owner?: string; labels?: { [key: string]: string }; name: string; when: { cron: string; tz?: string } | { every: string; anchor?: string } | { at: string } | { rrule: string; tz?: string }; overlap?: "skip" | "allow" | "queue" | "cancel_previous"; missed?: MissedIn; jitter?: string; start_at?: string; end_at?: string; max_runs?: number; paused?: boolean };

export type NodeOut = { id: number; name: string; state: "alive" | "expired" | "dead"; roles: Array<string>; version: string; running: number; started_at: string; lease_until: string };

export type NodesOut = { items: Array<NodeOut>; next_cursor: string | null };

export type PauseIn = { note?: string };

export type PlainExecutionOut = { execution_id: string; job_id: string; worker_id: string; user_id: string | null; status: "pending" | "scheduled" | "running" | "completed" | "failed" | "cancelled" | "skipped" | "paused"; attempt: number; scheduled_time: string; started_at: string | null };

export type PlainExecutionsOut = { executions: Array<PlainExecutionOut>; next_cursor: string | null };

export type PlainJobIn = { user_id?: string; task?: string; url?: string; method?: string; headers?: { [key: string]: string }; payload?: unknown; frequency?: string; next_run_time?: string; priority?: number; max_retries?: number };

export type PlainJobOut = { job_id: string; user_id: string | null; status: "pending" | "scheduled" | "running" | "completed" | "failed" | "cancelled" | "skipped" | "paused"; frequency: string; payload: unknown; next_run_time: string | null; retry_count: number; worker_id: string | null; output: unknown; error: string | null; created_at: string; started_at: string | null; finished_at: string | null };

export type PlainJobsOut = { jobs: Array<PlainJobOut>; next_cursor: string | null };

export type PlanCountsOut = { kept: number; added: number; withdrawn: number; moved: number };

export type PlanFiresOut = { kept: number; added: Array<string>; withdrawn: Array<string>; moved: Array<MoveOut> };

export type PlanOut = { version: number | null; diff: Array<DifferenceOut>; words: PlanWordsOut; fires: PlanFiresOut; counts: PlanCountsOut; jobs_withdrawn: number; warnings: Array<string>; complete: boolean };

export type PlanWordsOut = { before: string | null; after: string };

export type PointOut = { at: string; succeeded: number; failed: number; retried: number; dead: number; cancelled: number; skipped: number; lateness_p50_ms: number | null; lateness_p99_ms: number | null; duration_p50_ms: number | null };

export type PreviewIn = { when: { cron: string; tz?: string } | { every: string; anchor?: string } | { at: string } | { rrule: string; tz?: string }; count?: number; after?: string; start_at?: string; end_at?: string };

export type PreviewOut = { words: string; fires: Array<string>; details: Array<duetime__api__models__plans__FireOut>; warnings: Array<string> };

export type Problem = { type: string; title: string; status: number; detail: string; code: string; field?: string | null; errors?: Array<FieldError> | null; request_id?: string | null };

export type ProgressIn = { done: number; total?: number; note?: string };

export type QueueLimitIn = { most?: number | null; rate?: string | null };

export type QueueOut = { name: string; paused: boolean; pause_note: string | null; paused_at: string | null; most: number | null; rate: string | null; pending: number; due: number; running: number };

export type QueuesOut = { items: Array<QueueOut>; next_cursor: string | null };

export type RemovedOut = { success: boolean; message: string };

export type RestoreIn = { version: number };

export type RetryIn = { max_attempts?: number; first_delay?: string; multiplier?: number; max_delay?: string; jitter?: boolean };

export type RetryJobIn = { payload?: { [key: string]: unknown } };

export type RetryPolicyIn = { maxAttempts?: number; backoffMultiplier?: number; initialDelayMs?: number; maxDelayMs?: number };

export type RetryPolicyOut = { maxAttempts: number; backoffMultiplier: number; initialDelayMs: number; maxDelayMs: number };

export type ScheduleBulkIn = { ids?: Array<string>; dry_run?: boolean; cursor?: string; action: "pause" | "resume" | "trigger" | "remove"; filter?: ScheduleFilterIn; note?: string };

export type ScheduleFilterIn = { text?: string | null; paused?: boolean | null; owner?: string | null; label?: string | null; target?: string | null; queue?: string | null };

export type ScheduleOut = { id: string; name: string; version: number; when: { [key: string]: string }; description: string; target: { type: string; [key: string]: unknown }; payload: unknown; queue: string; priority: number; timeout: string | null; retry: { [key: string]: unknown } | null; delivery: "at_least_once" | "at_most_once"; owner: string | null; labels: { [key: string]: string }; overlap: "skip" | "allow" | "queue" | "cancel_previous"; missed: { [key: string]: unknown }; jitter: string; start_at: string | null; end_at: string | null; max_runs: number | null; paused: boolean; pause_note: string | null; runs: number; next_fire_time: string | null; last_fire_time: string | null; created_at: string; updated_at: string };

export type SchedulePageOut = { items: Array<ScheduleOut>; next_cursor: string | null };

export type SchedulePatchIn = { when?: { cron: string; tz?: string } | { every: string; anchor?: string } | { at: string } | { rrule: string; tz?: string }; target?: { type: "task"; name: string } | { type: "http"; url: string; method?: string; headers?: { [key: string]: string }; secret_headers?: { [key: string]: string }; signing_secret?: unknown; body?: "json" | "raw"; timeout?: string; success?: Array<number | string>; async?: boolean }; payload?: unknown; queue?: string; priority?: number; timeout?: string | null; retry?: RetryIn | null; delivery?: "at_least_once" | "at_most_once"; owner?: string | null; labels?: { [key: string]: string }; overlap?: "skip" | "allow" | "queue" | "cancel_previous"; missed?: MissedIn | null; jitter?: string; start_at?: string | null; end_at?: string | null; max_runs?: number | null; paused?: boolean };

export type ServicesOut = { database: string; locks: string; redis: string };

export type State = "pending" | "queued" | "running" | "succeeded" | "dead" | "cancelled" | "skipped";

export type StatsOut = { now: string; live: LiveOut; series: Array<PointOut>; failing: Array<FailingOut>; late: Array<JobSummaryOut>; next: Array<UpcomingOut>; leader: number | null };

export type SubmittedOut = { id: string; state: State; created: boolean; conflict: "skipped" | "replaced" | "rescheduled" | null; queue: string; priority: number; fire_time: string; due_at: string };

export type TargetErrorOut = { code: "target_not_allowed" | "target_unreachable" | "target_failed"; detail: string };

export type TargetTestIn = { target: { type: "http"; url: string; method?: string; headers?: { [key: string]: string }; secret_headers?: { [key: string]: string }; signing_secret?: unknown; body?: "json" | "raw"; timeout?: string; success?: Array<number | string>; async?: boolean }; payload?: unknown };

export type TargetTestOut = { status: number | null; headers: { [key: string]: string }; body: string | null; truncated: boolean; duration_ms: number; error: TargetErrorOut | null };

export type TaskOut = { name: string; queue: string | null; doc: string | null };

export type TasksOut = { items: Array<TaskOut> };

export type UpcomingOut = { schedule_id: string; name: string; at: string };

export type VersionOut = { version: number; at: string; author: string | null; change: Change; paused: boolean; schedule_id: string; definition: { [key: string]: unknown }; diff: Array<DifferenceOut> };

export type VersionPageOut = { items: Array<VersionOut>; next_cursor: string | null };

export type WhenPreviewOut = { words: string; fires: Array<duetime__api__models__plans__FireOut>; warnings: Array<string> };

export type WhyOut = { code: string; why: string; since: string | null; remedy: string | null };

export type duetime__api__models__plans__FireOut = { at: string; local: string; note: string | null };

export type duetime__api__v1__calendar__FireOut = { at: string; schedule_id: string; name: string; target: string };

/** Every route with what it takes and what it answers when all is well. */
export interface Routes {
  'GET /calendar': { path: unknown; query: { from?: string | null; to?: string | null; bucket?: "1m" | "5m" | "10m" | "15m" | "30m" | "1h" | "2h" | "3h" | "4h" | "6h" | "8h" | "12h" | "1d"; tz?: string }; body: unknown; answer: CalendarOut; };
  'GET /calendar/fires': { path: unknown; query: { from?: string | null; to?: string | null; limit?: number; cursor?: string | null }; body: unknown; answer: FiresOut; };
  'GET /dead': { path: unknown; query: unknown; body: unknown; answer: DeadGroupsOut; };
  'GET /events': { path: unknown; query: { types?: string }; body: unknown; answer: unknown; };
  'GET /jobs': { path: unknown; query: { state?: State | null; queue?: string | null; owner?: string | null; schedule?: string | null; worker?: string | null; label?: string | null; due_after?: string | null; due_before?: string | null; target?: string | null; error?: string | null; limit?: number; cursor?: string | null }; body: unknown; answer: JobPageOut; };
  'POST /jobs': { path: unknown; query: unknown; body: NewJobIn; answer: SubmittedOut; };
  'POST /jobs/batch': { path: unknown; query: unknown; body: JobBatchIn; answer: BatchOut; };
  'POST /jobs/bulk': { path: unknown; query: unknown; body: JobBulkIn; answer: BulkOut; };
  'DELETE /jobs/{job_id}': { path: { job_id: string }; query: { reason?: string | null }; body: unknown; answer: JobOut; };
  'GET /jobs/{job_id}': { path: { job_id: string }; query: { wait?: string }; body: unknown; answer: JobOut; };
  'PATCH /jobs/{job_id}': { path: { job_id: string }; query: unknown; body: JobPatchIn; answer: JobOut; };
  'POST /jobs/{job_id}/complete': { path: { job_id: string }; query: unknown; body: CompleteIn; answer: JobOut; };
  'POST /jobs/{job_id}/discard': { path: { job_id: string }; query: unknown; body: unknown; answer: unknown; };
  'POST /jobs/{job_id}/fail': { path: { job_id: string }; query: unknown; body: FailIn; answer: JobOut; };
  'POST /jobs/{job_id}/heartbeat': { path: { job_id: string }; query: unknown; body: HeartbeatIn; answer: JobOut; };
  'POST /jobs/{job_id}/retry': { path: { job_id: string }; query: unknown; body: RetryJobIn; answer: JobOut; };
  'POST /jobs/{job_id}/run': { path: { job_id: string }; query: unknown; body: unknown; answer: JobOut; };
  'GET /jobs/{job_id}/why': { path: { job_id: string }; query: unknown; body: unknown; answer: WhyOut; };
  'GET /keys': { path: unknown; query: { limit?: number; cursor?: string | null }; body: unknown; answer: KeyPageOut; };
  'POST /keys': { path: unknown; query: unknown; body: NewKeyIn; answer: CreatedKeyOut; };
  'DELETE /keys/{prefix}': { path: { prefix: string }; query: unknown; body: unknown; answer: unknown; };
  'GET /leases': { path: unknown; query: unknown; body: unknown; answer: LeasesOut; };
  'GET /me': { path: unknown; query: unknown; body: unknown; answer: MeOut; };
  'GET /nodes': { path: unknown; query: unknown; body: unknown; answer: NodesOut; };
  'POST /preview': { path: unknown; query: unknown; body: PreviewIn; answer: WhenPreviewOut; };
  'GET /queues': { path: unknown; query: unknown; body: unknown; answer: QueuesOut; };
  'POST /queues/{name}/limit': { path: { name: string }; query: unknown; body: QueueLimitIn; answer: QueueOut; };
  'POST /queues/{name}/pause': { path: { name: string }; query: unknown; body: PauseIn; answer: QueueOut; };
  'POST /queues/{name}/resume': { path: { name: string }; query: unknown; body: unknown; answer: QueueOut; };
  'GET /schedules': { path: unknown; query: { limit?: number; cursor?: string | null; text?: string | null; paused?: boolean | null; owner?: string | null; label?: string | null; target?: string | null; queue?: string | null }; body: unknown; answer: SchedulePageOut; };
  'POST /schedules': { path: unknown; query: unknown; body: NewScheduleIn; answer: ScheduleOut; };
  'POST /schedules/bulk': { path: unknown; query: unknown; body: ScheduleBulkIn; answer: BulkOut; };
  'POST /schedules/plan': { path: unknown; query: { horizon?: string; count?: number }; body: NewScheduleIn; answer: PlanOut; };
  'DELETE /schedules/{schedule_id}': { path: { schedule_id: string }; query: unknown; body: unknown; answer: unknown; };
  'GET /schedules/{schedule_id}': { path: { schedule_id: string }; query: unknown; body: unknown; answer: ScheduleOut; };
  'PATCH /schedules/{schedule_id}': { path: { schedule_id: string }; query: unknown; body: SchedulePatchIn; answer: ScheduleOut; };
  'POST /schedules/{schedule_id}/backfill': { path: { schedule_id: string }; query: unknown; body: BackfillIn; answer: BackfillOut; };
  'GET /schedules/{schedule_id}/jobs': { path: { schedule_id: string }; query: { limit?: number; cursor?: string | null }; body: unknown; answer: JobPageOut; };
  'POST /schedules/{schedule_id}/pause': { path: { schedule_id: string }; query: unknown; body: PauseIn; answer: ScheduleOut; };
  'POST /schedules/{schedule_id}/plan': { path: { schedule_id: string }; query: { horizon?: string; count?: number }; body: SchedulePatchIn; answer: PlanOut; };
  'GET /schedules/{schedule_id}/preview': { path: { schedule_id: string }; query: { count?: number; after?: string | null }; body: unknown; answer: PreviewOut; };
  'POST /schedules/{schedule_id}/restore': { path: { schedule_id: string }; query: unknown; body: RestoreIn; answer: ScheduleOut; };
  'POST /schedules/{schedule_id}/resume': { path: { schedule_id: string }; query: unknown; body: unknown; answer: ScheduleOut; };
  'POST /schedules/{schedule_id}/trigger': { path: { schedule_id: string }; query: unknown; body: unknown; answer: JobOut; };
  'GET /schedules/{schedule_id}/versions': { path: { schedule_id: string }; query: { limit?: number; cursor?: string | null }; body: unknown; answer: VersionPageOut; };
  'GET /schedules/{schedule_id}/why': { path: { schedule_id: string }; query: unknown; body: unknown; answer: WhyOut; };
  'GET /stats': { path: unknown; query: { since?: string; step?: string }; body: unknown; answer: StatsOut; };
  'POST /targets/test': { path: unknown; query: unknown; body: TargetTestIn; answer: TargetTestOut; };
  'GET /tasks': { path: unknown; query: unknown; body: unknown; answer: TasksOut; };
}
