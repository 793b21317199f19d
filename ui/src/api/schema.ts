// Written by tools/ui_types.py from the OpenAPI document. Change the API, then run `make ui`.

export type AgentHealthOut = { status: string; timestamp: string; services: ServicesOut };

export type AgentScheduleIn = { name: string; cronExpression: string; agentId: string; agentUrl: string; httpMethod?: string; headers?: { [key: string]: string }; payload?: unknown; retryPolicy?: RetryPolicyIn; enabled?: boolean; missed?: "latest" | "all" | "skip" };

export type AgentScheduleOut = { id: string; name: string; cronExpression: string; agentId: string; agentUrl: string; httpMethod: string; headers: { [key: string]: string }; payload: unknown; retryPolicy: RetryPolicyOut; enabled: boolean; missed: "latest" | "all" | "skip"; createdAt: string; updatedAt: string };

export type AgentSchedulePatchIn = { name?: string; cronExpression?: string; agentId?: string; agentUrl?: string; httpMethod?: string; headers?: { [key: string]: string }; payload?: unknown; retryPolicy?: RetryPolicyIn; enabled?: boolean; missed?: "latest" | "all" | "skip"; id?: string; createdAt?: string; updatedAt?: string };

export type AlertChannelIn = { target: { type: "webhook"; url: string; signing_secret?: unknown } | { type: "slack"; url?: string } | { type: "pagerduty"; routing_key?: string; url?: string } | { type: "alertmanager"; url: string; authorization?: unknown } | { type: "email"; host: string; port?: number; tls?: "starttls" | "tls" | "none"; sender: string; to: Array<string>; username?: string; password?: unknown } | { type: "apprise"; url?: string }; quiet?: Array<{ start: string; end: string; tz?: string; days?: Array<"mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun"> }>; enabled?: boolean };

export type AlertChannelView = { name: string; type: "webhook" | "slack" | "pagerduty" | "alertmanager" | "email" | "apprise"; settings: { [key: string]: unknown }; secrets: Array<string>; quiet: Array<{ [key: string]: unknown }>; enabled: boolean; version: number };

export type AlertRuleIn = { condition: "silent" | "late" | "failing" | "dead_letters" | "skipped" | "queue_lag" | "no_leader" | "node_lost" | "clock_skew"; schedule?: string; queue?: string; after?: string; count?: number; ratio?: number; window?: string; channels?: Array<string>; severity?: "critical" | "warning" | "info"; enabled?: boolean };

export type AlertRuleView = { name: string; condition: "silent" | "late" | "failing" | "dead_letters" | "skipped" | "queue_lag" | "no_leader" | "node_lost" | "clock_skew"; schedule: string | null; queue: string | null; after: string | null; count: number | null; ratio: number | null; window: string | null; channels: Array<string>; severity: "critical" | "warning" | "info"; enabled: boolean; version: number };

export type AlertTest = { job_id: string };

export type AlertView = { id: string; condition: "silent" | "late" | "failing" | "dead_letters" | "skipped" | "queue_lag" | "no_leader" | "node_lost" | "clock_skew"; subject: string; severity: "critical" | "warning" | "info"; rule: string; text: string; since: string; opened_at: string; closed_at: string | null; closed: string | null; told: Array<string>; muted_until: string | null };

export type AliveIn = { id: string; attempt: number; checkpoint?: unknown; progress?: ProgressIn };

export type ArgumentView = { name: string; type: string | null; required: boolean; default: unknown };

export type AtIn = { at: string };

export type AttemptView = { attempt: number; ending: Ending; node: number | null; started_at: string | null; finished_at: string; error: string | null; result: unknown };

export type BackfillIn = { from: string; to?: string; rate?: string; limit?: number };

export type Backfilled = { added: number; existing: number; next_from: string | null };

export type BatchJobIn = { target: TargetIn; payload?: unknown; queue?: string; priority?: number; timeout?: string; retry?: RetryIn; delivery?: "at_least_once" | "at_most_once"; owner?: string; labels?: { [key: string]: string }; at?: string; delay?: string; expires?: string; jitter?: string; unique_key?: string };

export type BrokerView = { address: string | null; up: boolean; remark: string | null; depth: Array<QueueMessages> };

export type BulkFailure = { id: string; code: string; detail: string };

export type BulkResult = { matched: number; at_least: boolean; done: number; failed: Array<BulkFailure>; next_cursor: string | null };

export type CalendarBucket = { at: string; count: number };

export type CalendarRange = { bucket: string; buckets: Array<CalendarBucket>; complete: boolean; note: string | null; from: string; to: string };

export type Change = "created" | "replaced" | "paused" | "resumed" | "removed";

export type ClaimIn = { max?: number; wait?: string };

export type ClaimedJob = { id: string; attempt: number; task: string; payload: unknown; queue: string; priority: number; schedule: string | null; fire_time: string; due_at: string; failures: number; deadline: string | null; checkpoint: unknown; idempotency_key: string };

export type ClaimedJobs = { jobs: Array<ClaimedJob> };

export type ComingFire = { at: string; schedule_id: string; name: string; target: string };

export type CommandTarget = { type: "command"; argv: Array<string>; cwd?: string };

export type CompleteIn = { token: string; output?: Array<OutputLineIn>; result?: unknown };

export type CompletedIn = { id: string; attempt: number; result?: unknown };

export type CompletionsIn = { jobs: Array<CompletedIn> };

export type CreatedKey = { prefix: string; name: string; scopes: Array<Scope>; tenant: string; created_at: string; expires_at: string | null; last_used_at: string | null; revoked_at: string | null; rate: string | null; queues: Array<string>; key: string };

export type CronIn = { cron: string; tz?: string };

export type DeadGroup = { error: string; target: string; count: number; oldest: string; newest: string; sample: string };

export type DeadGroups = { items: Array<DeadGroup>; complete: boolean };

export type Difference = { before: unknown; after: unknown; field: string };

export type Ending = "succeeded" | "failed" | "timed_out" | "cancelled" | "released" | "handed_over" | "snoozed" | "lost";

export type EveryIn = { every: string; anchor?: string };

export type ExecutionOut = { id: string; scheduleId: string; fireTime: string; status: "PENDING" | "RUNNING" | "RETRYING" | "SUCCESS" | "FAILED" | "CANCELLED" | "SKIPPED"; attempts: number; startedAt: string | null; completedAt: string | null; error: string | null; response: unknown; createdAt: string };

export type FailIn = { token: string; output?: Array<OutputLineIn>; error: string; retry?: boolean };

export type FailedIn = { id: string; attempt: number; error: WorkErrorIn; retry?: boolean; after?: string };

export type FailingTarget = { target: string; failed: number; last_error: string; sample: string };

export type FailuresIn = { jobs: Array<FailedIn> };

export type FieldError = { field: string; message: string };

export type FireView = { at: string; local: string; note: string | null };

export type HealthView = { status: string; version: string };

export type HeartbeatIn = { token: string; output?: Array<OutputLineIn>; progress?: ProgressIn; checkpoint?: unknown };

export type HeartbeatReply = { stop: Array<StopNotice> };

export type HttpTargetIn = { type: "http"; url: string; method?: string; headers?: { [key: string]: string }; secret_headers?: { [key: string]: string }; signing_secret?: unknown; body?: "json" | "raw"; timeout?: string; success?: Array<number | string>; async?: boolean };

export type JobBatchIn = { jobs: Array<BatchJobIn> };

export type JobBulkIn = { ids?: Array<string>; dry_run?: boolean; cursor?: string; action: "cancel" | "retry" | "run" | "discard"; filter?: JobFilterIn };

export type JobFilterIn = { state?: "pending" | "queued" | "running" | "succeeded" | "dead" | "cancelled" | "skipped" | null; queue?: string | null; owner?: string | null; schedule?: string | null; label?: string | null; target?: string | null; due_after?: string | null; due_before?: string | null; error?: string | null; error_group?: string | null; payload?: string | null };

export type JobOutputIn = { id: string; attempt: number; lines: Array<OutputLineIn> };

export type JobPatchIn = { at?: string; delay?: string; priority?: number };

export type JobSummary = { id: string; state: State; target: { type: string; [key: string]: unknown }; schedule: string | null; fire_time: string; due_at: string; queue: string; priority: number; attempt: number; failures: number; node: number | null; owner: string | null; labels: { [key: string]: string }; unique_key: string | null; retry_of: string | null; cancel_requested: boolean; created_at: string; claimed_at: string | null; started_at: string | null; finished_at: string | null; error: string | null; disposition: string | null; payload: unknown; payload_bytes: number };

export type JobView = { id: string; state: State; target: { type: string; [key: string]: unknown }; schedule: string | null; fire_time: string; due_at: string; queue: string; priority: number; attempt: number; failures: number; node: number | null; owner: string | null; labels: { [key: string]: string }; unique_key: string | null; retry_of: string | null; cancel_requested: boolean; created_at: string; claimed_at: string | null; started_at: string | null; finished_at: string | null; error: string | null; disposition: string | null; payload: unknown; payload_bytes: number; timeout: string | null; retry: { [key: string]: unknown } | null; delivery: "at_least_once" | "at_most_once"; expires: string | null; losses: number; checkpoint: unknown; progress: unknown; result: unknown; trace_id: string | null; attempts: Array<AttemptView> };

export type JoinIn = { name: string; tasks: Array<RemoteTaskIn>; queues?: Array<string>; concurrency?: number; lease?: string };

export type KeyView = { prefix: string; name: string; scopes: Array<Scope>; tenant: string; created_at: string; expires_at: string | null; last_used_at: string | null; revoked_at: string | null; rate: string | null; queues: Array<string> };

export type LeaseView = { name: string; holder: number | null; token: number; expires_at: string | null };

export type LiveCounts = { pending: number; due: number; running: number; dead: number };

export type Me = { tenant: string; scopes: Array<Scope>; key: string | null; local: boolean; version: string; now: string; expires_at: string | null; trace_link: string | null };

export type MissedIn = { policy?: "latest" | "all" | "skip"; within?: string; max?: number; waiting?: boolean };

export type MuteIn = { for: string; start?: string; condition?: "silent" | "late" | "failing" | "dead_letters" | "skipped" | "queue_lag" | "no_leader" | "node_lost" | "clock_skew"; subject?: string; note?: string };

export type MuteView = { id: string; start: string; until: string; condition: "silent" | "late" | "failing" | "dead_letters" | "skipped" | "queue_lag" | "no_leader" | "node_lost" | "clock_skew" | null; subject: string | null; note: string | null; author: string | null };

export type NewJobIn = { target: TargetIn; payload?: unknown; queue?: string; priority?: number; timeout?: string; retry?: RetryIn; delivery?: "at_least_once" | "at_most_once"; owner?: string; labels?: { [key: string]: string }; at?: string; delay?: string; expires?: string; jitter?: string; unique_key?: string; on_conflict?: "skip" | "replace" | "reschedule" };

export type NewKeyIn = { name: string; scopes: Array<"read" | "submit" | "manage" | "admin" | "work">; expires_in?: string; tenant?: string; rate?: string; queues?: Array<string> };

export type NewScheduleIn = { target: TargetIn; payload?: unknown; queue?: string; priority?: number; timeout?: string; retry?: RetryIn; delivery?: "at_least_once" | "at_most_once"; owner?: string; labels?: { [key: string]: string }; name: string; when: WhenIn; overlap?: "skip" | "allow" | "queue" | "cancel_previous"; missed?: MissedIn; jitter?: string; start_at?: string; end_at?: string; max_runs?: number; expires?: string; paused?: boolean };

export type NextFire = { schedule_id: string; name: string; at: string };

export type NodeView = { id: number; name: string; state: "alive" | "expired" | "dead" | "left"; roles: Array<string>; version: string; running: number; started_at: string; lease_until: string; broker: string | null; permissions: { [key: string]: Array<string> } | null; lacks: Array<string>; clock_skew: number | null };

export type OutputLine = { number: number; at: string; stream: "log" | "stdout" | "stderr"; level: "debug" | "info" | "warning" | "error" | "critical"; text: string };

export type OutputLineIn = { text: string; stream?: "log" | "stdout" | "stderr"; level?: "debug" | "info" | "warning" | "error" | "critical" };

export type OutputView = { attempt: number; lines: Array<OutputLine>; total: number; last: number; ended: boolean };

export type OutputsIn = { jobs: Array<JobOutputIn> };

export type Page_AlertChannelView_ = { items: Array<AlertChannelView>; next_cursor: string | null };

export type Page_AlertRuleView_ = { items: Array<AlertRuleView>; next_cursor: string | null };

export type Page_AlertView_ = { items: Array<AlertView>; next_cursor: string | null };

export type Page_ComingFire_ = { items: Array<ComingFire>; next_cursor: string | null };

export type Page_JobSummary_ = { items: Array<JobSummary>; next_cursor: string | null };

export type Page_KeyView_ = { items: Array<KeyView>; next_cursor: string | null };

export type Page_LeaseView_ = { items: Array<LeaseView>; next_cursor: string | null };

export type Page_MuteView_ = { items: Array<MuteView>; next_cursor: string | null };

export type Page_NodeView_ = { items: Array<NodeView>; next_cursor: string | null };

export type Page_QueueView_ = { items: Array<QueueView>; next_cursor: string | null };

export type Page_ScheduleView_ = { items: Array<ScheduleView>; next_cursor: string | null };

export type Page_TaskView_ = { items: Array<TaskView>; next_cursor: string | null };

export type Page_VersionView_ = { items: Array<VersionView>; next_cursor: string | null };

export type PauseIn = { note?: string };

export type PlainExecutionOut = { execution_id: string; job_id: string; worker_id: string; user_id: string | null; status: "pending" | "scheduled" | "running" | "completed" | "failed" | "cancelled" | "skipped" | "paused"; attempt: number; scheduled_time: string; started_at: string | null };

export type PlainExecutionsOut = { executions: Array<PlainExecutionOut>; next_cursor: string | null };

export type PlainJobIn = { user_id?: string; task?: string; url?: string; method?: string; headers?: { [key: string]: string }; payload?: unknown; frequency?: string; next_run_time?: string; missed?: "latest" | "all" | "skip"; priority?: number; max_retries?: number };

export type PlainJobOut = { job_id: string; user_id: string | null; status: "pending" | "scheduled" | "running" | "completed" | "failed" | "cancelled" | "skipped" | "paused"; frequency: string; payload: unknown; next_run_time: string | null; retry_count: number; worker_id: string | null; output: unknown; error: string | null; created_at: string; started_at: string | null; finished_at: string | null };

export type PlainJobsOut = { jobs: Array<PlainJobOut>; next_cursor: string | null };

export type PlanCounts = { kept: number; added: number; withdrawn: number; moved: number };

export type PlanFires = { kept: number; added: Array<string>; withdrawn: Array<string>; moved: Array<{ from: string; to: string }> };

export type PlanView = { version: number | null; diff: Array<Difference>; words: PlanWords; fires: PlanFires; counts: PlanCounts; jobs_withdrawn: number; warnings: Array<string>; complete: boolean };

export type PlanWords = { before: string | null; after: string };

export type PreviewIn = { when: WhenIn; count?: number; after?: string; start_at?: string; end_at?: string };

export type PreviewView = { words: string; fires: Array<FireView>; warnings: Array<string> };

export type Problem = { type: string; title: string; status: number; detail: string; code: string; field?: string | null; errors?: Array<FieldError> | null; request_id?: string | null };

export type ProgressIn = { done: number; total?: number; note?: string };

export type PublishTarget = { type: "publish"; destination: string; key?: string; report?: "required" };

export type QueueDepth = { name: string; pending: Array<number | null>; due: Array<number | null>; running: Array<number | null> };

export type QueueDepths = { times: Array<string>; queues: Array<QueueDepth> };

export type QueueLimitIn = { max_running?: number | null; rate?: string | null };

export type QueueMessages = { queue: string; priority: number; messages: number };

export type QueueView = { name: string; paused: boolean; pause_note: string | null; paused_at: string | null; max_running: number | null; rate: string | null; pending: number; due: number; running: number };

export type RRuleIn = { rrule: string; tz?: string };

export type ReadStoreView = { lag_ms: number | null; remark: string | null };

export type ReadyView = { status: string; version: string; remark: string | null };

export type RefusedReport = { id: string; attempt: number };

export type ReleasedIn = { id: string; attempt: number; started?: boolean };

export type ReleasesIn = { jobs: Array<ReleasedIn> };

export type RemoteTaskIn = { name: string; timeout?: string; retry?: RetryIn };

export type RemovedOut = { success: boolean; message: string };

export type ReportReply = { refused: Array<RefusedReport> };

export type RestoreIn = { version: number };

export type RetryIn = { max_attempts?: number; first_delay?: string; multiplier?: number; max_delay?: string; backoff?: "exponential" | "linear"; delays?: Array<string>; jitter?: boolean; max_age?: string; max_losses?: number };

export type RetryJobIn = { payload?: { [key: string]: unknown } };

export type RetryPolicyIn = { maxAttempts?: number; backoffMultiplier?: number; initialDelayMs?: number; maxDelayMs?: number };

export type RetryPolicyOut = { maxAttempts: number; backoffMultiplier: number; initialDelayMs: number; maxDelayMs: number };

export type ScheduleBulkIn = { ids?: Array<string>; dry_run?: boolean; cursor?: string; action: "pause" | "resume" | "trigger" | "remove"; filter?: ScheduleFilterIn; note?: string };

export type ScheduleFilterIn = { text?: string | null; paused?: boolean | null; owner?: string | null; label?: string | null; target?: string | null; queue?: string | null };

export type SchedulePatchIn = { when?: WhenIn; target?: TargetIn; payload?: unknown; queue?: string | null; priority?: number | null; timeout?: string | null; expires?: string | null; retry?: RetryIn | null; delivery?: "at_least_once" | "at_most_once" | null; owner?: string | null; labels?: { [key: string]: string }; overlap?: "skip" | "allow" | "queue" | "cancel_previous"; missed?: MissedIn | null; jitter?: string; start_at?: string | null; end_at?: string | null; max_runs?: number | null; paused?: boolean };

export type SchedulePreview = { words: string; fires: Array<string>; details: Array<FireView>; warnings: Array<string> };

export type ScheduleView = { id: string; name: string; version: number; when: { [key: string]: string }; description: string; target: { type: string; [key: string]: unknown }; payload: unknown; queue: string; priority: number; timeout: string | null; retry: { [key: string]: unknown } | null; delivery: "at_least_once" | "at_most_once"; expires: string | null; owner: string | null; labels: { [key: string]: string }; overlap: "skip" | "allow" | "queue" | "cancel_previous"; missed: { [key: string]: unknown }; jitter: string; start_at: string | null; end_at: string | null; max_runs: number | null; paused: boolean; pause_note: string | null; runs: number; next_fire_time: string | null; last_fire_time: string | null; created_at: string; updated_at: string; drift: Array<Difference> | null; warning: string | null };

export type Scope = "read" | "submit" | "manage" | "admin" | "work";

export type ServicesOut = { database: string; locks: string; redis: string };

export type SigningSecrets = { origin: string; secrets: Array<string> };

export type SnoozeIn = { for?: string; note?: string };

export type SnoozedIn = { id: string; attempt: number; after: string; reason?: string };

export type SnoozesIn = { jobs: Array<SnoozedIn> };

export type State = "pending" | "queued" | "running" | "succeeded" | "dead" | "cancelled" | "skipped";

export type Stats = { now: string; live: LiveCounts; series: Array<StatsPoint>; failing: Array<FailingTarget>; late: Array<JobSummary>; next: Array<NextFire>; leader: number | null; read_store: ReadStoreView | null };

export type StatsPoint = { at: string; succeeded: number; failed: number; retried: number; dead: number; cancelled: number; skipped: number; lateness_p50_ms: number | null; lateness_p99_ms: number | null; duration_p50_ms: number | null };

export type StopNotice = { id: string; attempt: number; reason: "cancelled" | "timed_out" | "lost" };

export type Submitted = { id: string; state: State; created: boolean; conflict: "skipped" | "replaced" | "rescheduled" | null; queue: string; priority: number; fire_time: string; due_at: string; warning: string | null };

export type SubmittedBatch = { ids: Array<string>; created: number; warnings: Array<string> };

export type TargetError = { code: "target_not_allowed" | "target_unreachable" | "target_failed"; detail: string };

export type TargetIn = TaskTargetIn | HttpTargetIn | CommandTarget | PublishTarget | { type: "shadow"; target: TaskTargetIn | HttpTargetIn | CommandTarget | PublishTarget };

export type TargetTestIn = { target: HttpTargetIn; payload?: unknown };

export type TargetTestResult = { status: number | null; headers: { [key: string]: string }; body: string | null; truncated: boolean; duration_ms: number; error: TargetError | null };

export type TaskTargetIn = { type: "task"; name: string };

export type TaskView = { name: string; queue: string | null; doc: string | null; arguments: Array<ArgumentView>; priority: number | null; timeout: string | null; retry: { [key: string]: unknown } | null; delivery: "at_least_once" | "at_most_once" | null; max_running: number | null; rate: string | null; limited_per: string | null };

export type VersionView = { version: number; at: string; author: string | null; change: Change; paused: boolean; schedule_id: string; definition: { [key: string]: unknown }; diff: Array<Difference> };

export type WhenIn = CronIn | EveryIn | AtIn | RRuleIn;

export type WhyView = { code: string; why: string; since: string | null; remedy: string | null };

export type WorkErrorIn = { type?: string; message: string; traceback?: string };

export type WorkHeartbeatIn = { jobs: Array<AliveIn> };

export type WorkerView = { worker: number; queues: Array<string>; tasks: Array<string>; lease_seconds: number; heartbeat_seconds: number };

/** Default values of request fields, for forms. */
export const DEFAULTS = {
  MissedIn: { policy: "latest" },
  NewScheduleIn: { queue: "default", priority: 5, delivery: "at_least_once", overlap: "allow", jitter: "0s" },
  RetryIn: { max_attempts: 5, first_delay: "5s", multiplier: 2.0, max_delay: "1h", backoff: "exponential", max_losses: 5 },
} as const;

/** Possible values of fields, for forms. */
export const CHOICES = {
  AlertChannelView: { type: ["webhook", "slack", "pagerduty", "alertmanager", "email", "apprise"] },
} as const;

/** Every route with its parameters, request body and successful response. */
export interface Routes {
  'GET /alerts': { path: unknown; query: { past?: boolean; limit?: number }; body: unknown; response: Page_AlertView_; };
  'GET /alerts/channels': { path: unknown; query: unknown; body: unknown; response: Page_AlertChannelView_; };
  'DELETE /alerts/channels/{channel}': { path: { channel: string }; query: unknown; body: unknown; response: unknown; };
  'PUT /alerts/channels/{channel}': { path: { channel: string }; query: unknown; body: AlertChannelIn; response: AlertChannelView; };
  'POST /alerts/channels/{channel}/test': { path: { channel: string }; query: unknown; body: unknown; response: AlertTest; };
  'GET /alerts/deliveries': { path: unknown; query: { limit?: number }; body: unknown; response: Page_JobSummary_; };
  'GET /alerts/mutes': { path: unknown; query: unknown; body: unknown; response: Page_MuteView_; };
  'POST /alerts/mutes': { path: unknown; query: unknown; body: MuteIn; response: MuteView; };
  'DELETE /alerts/mutes/{mute_id}': { path: { mute_id: string }; query: unknown; body: unknown; response: unknown; };
  'GET /alerts/rules': { path: unknown; query: unknown; body: unknown; response: Page_AlertRuleView_; };
  'DELETE /alerts/rules/{rule}': { path: { rule: string }; query: unknown; body: unknown; response: unknown; };
  'PUT /alerts/rules/{rule}': { path: { rule: string }; query: unknown; body: AlertRuleIn; response: AlertRuleView; };
  'POST /alerts/{alert_id}/close': { path: { alert_id: string }; query: unknown; body: unknown; response: AlertView; };
  'POST /alerts/{alert_id}/snooze': { path: { alert_id: string }; query: unknown; body: SnoozeIn; response: MuteView; };
  'GET /broker': { path: unknown; query: unknown; body: unknown; response: BrokerView; };
  'GET /calendar': { path: unknown; query: { from?: string | null; to?: string | null; bucket?: "1m" | "5m" | "10m" | "15m" | "30m" | "1h" | "2h" | "3h" | "4h" | "6h" | "8h" | "12h" | "1d"; tz?: string }; body: unknown; response: CalendarRange; };
  'GET /calendar/fires': { path: unknown; query: { limit?: number; cursor?: string | null; from?: string | null; to?: string | null }; body: unknown; response: Page_ComingFire_; };
  'GET /dead': { path: unknown; query: { target?: string | null; error?: string | null; payload?: string | null }; body: unknown; response: DeadGroups; };
  'GET /events': { path: unknown; query: { types?: string }; body: unknown; response: unknown; };
  'GET /jobs': { path: unknown; query: { state?: "pending" | "queued" | "running" | "succeeded" | "dead" | "cancelled" | "skipped" | null; queue?: string | null; owner?: string | null; schedule?: string | null; label?: string | null; target?: string | null; due_after?: string | null; due_before?: string | null; error?: string | null; error_group?: string | null; payload?: string | null; limit?: number; cursor?: string | null; worker?: string | null; id?: string | null }; body: unknown; response: Page_JobSummary_; };
  'POST /jobs': { path: unknown; query: unknown; body: NewJobIn; response: Submitted; };
  'POST /jobs/batch': { path: unknown; query: unknown; body: JobBatchIn; response: SubmittedBatch; };
  'POST /jobs/bulk': { path: unknown; query: unknown; body: JobBulkIn; response: BulkResult; };
  'DELETE /jobs/{job_id}': { path: { job_id: string }; query: { reason?: string | null }; body: unknown; response: JobView; };
  'GET /jobs/{job_id}': { path: { job_id: string }; query: { wait?: string }; body: unknown; response: JobView; };
  'PATCH /jobs/{job_id}': { path: { job_id: string }; query: unknown; body: JobPatchIn; response: JobView; };
  'POST /jobs/{job_id}/complete': { path: { job_id: string }; query: unknown; body: CompleteIn; response: JobView; };
  'POST /jobs/{job_id}/discard': { path: { job_id: string }; query: unknown; body: unknown; response: unknown; };
  'POST /jobs/{job_id}/fail': { path: { job_id: string }; query: unknown; body: FailIn; response: JobView; };
  'POST /jobs/{job_id}/heartbeat': { path: { job_id: string }; query: unknown; body: HeartbeatIn; response: JobView; };
  'GET /jobs/{job_id}/output': { path: { job_id: string }; query: { attempt?: number | null; after?: number }; body: unknown; response: OutputView; };
  'POST /jobs/{job_id}/retry': { path: { job_id: string }; query: unknown; body: RetryJobIn; response: JobView; };
  'POST /jobs/{job_id}/run': { path: { job_id: string }; query: unknown; body: unknown; response: JobView; };
  'GET /jobs/{job_id}/why': { path: { job_id: string }; query: { tz?: string }; body: unknown; response: WhyView; };
  'GET /keys': { path: unknown; query: { limit?: number; cursor?: string | null }; body: unknown; response: Page_KeyView_; };
  'POST /keys': { path: unknown; query: unknown; body: NewKeyIn; response: CreatedKey; };
  'DELETE /keys/{prefix}': { path: { prefix: string }; query: unknown; body: unknown; response: unknown; };
  'GET /leases': { path: unknown; query: unknown; body: unknown; response: Page_LeaseView_; };
  'GET /me': { path: unknown; query: unknown; body: unknown; response: Me; };
  'GET /nodes': { path: unknown; query: unknown; body: unknown; response: Page_NodeView_; };
  'POST /preview': { path: unknown; query: unknown; body: PreviewIn; response: PreviewView; };
  'GET /queues': { path: unknown; query: { limit?: number; cursor?: string | null }; body: unknown; response: Page_QueueView_; };
  'POST /queues/{name}/limit': { path: { name: string }; query: unknown; body: QueueLimitIn; response: QueueView; };
  'POST /queues/{name}/pause': { path: { name: string }; query: unknown; body: PauseIn; response: QueueView; };
  'POST /queues/{name}/resume': { path: { name: string }; query: unknown; body: unknown; response: QueueView; };
  'GET /schedules': { path: unknown; query: { text?: string | null; paused?: boolean | null; owner?: string | null; label?: string | null; target?: string | null; queue?: string | null; limit?: number; cursor?: string | null }; body: unknown; response: Page_ScheduleView_; };
  'POST /schedules': { path: unknown; query: unknown; body: NewScheduleIn; response: ScheduleView; };
  'POST /schedules/bulk': { path: unknown; query: unknown; body: ScheduleBulkIn; response: BulkResult; };
  'POST /schedules/plan': { path: unknown; query: { horizon?: string; count?: number }; body: NewScheduleIn; response: PlanView; };
  'DELETE /schedules/{schedule_id}': { path: { schedule_id: string }; query: unknown; body: unknown; response: unknown; };
  'GET /schedules/{schedule_id}': { path: { schedule_id: string }; query: unknown; body: unknown; response: ScheduleView; };
  'PATCH /schedules/{schedule_id}': { path: { schedule_id: string }; query: unknown; body: SchedulePatchIn; response: ScheduleView; };
  'POST /schedules/{schedule_id}/backfill': { path: { schedule_id: string }; query: unknown; body: BackfillIn; response: Backfilled; };
  'GET /schedules/{schedule_id}/jobs': { path: { schedule_id: string }; query: { limit?: number; cursor?: string | null }; body: unknown; response: Page_JobSummary_; };
  'POST /schedules/{schedule_id}/pause': { path: { schedule_id: string }; query: unknown; body: PauseIn; response: ScheduleView; };
  'POST /schedules/{schedule_id}/plan': { path: { schedule_id: string }; query: { horizon?: string; count?: number }; body: SchedulePatchIn; response: PlanView; };
  'GET /schedules/{schedule_id}/preview': { path: { schedule_id: string }; query: { count?: number; after?: string | null }; body: unknown; response: SchedulePreview; };
  'POST /schedules/{schedule_id}/restore': { path: { schedule_id: string }; query: unknown; body: RestoreIn; response: ScheduleView; };
  'POST /schedules/{schedule_id}/resume': { path: { schedule_id: string }; query: unknown; body: unknown; response: ScheduleView; };
  'POST /schedules/{schedule_id}/trigger': { path: { schedule_id: string }; query: unknown; body: unknown; response: JobView; };
  'GET /schedules/{schedule_id}/versions': { path: { schedule_id: string }; query: { limit?: number; cursor?: string | null }; body: unknown; response: Page_VersionView_; };
  'GET /schedules/{schedule_id}/why': { path: { schedule_id: string }; query: { tz?: string | null }; body: unknown; response: WhyView; };
  'GET /stats': { path: unknown; query: { since?: string; step?: string }; body: unknown; response: Stats; };
  'GET /stats/queues': { path: unknown; query: { since?: string; step?: string }; body: unknown; response: QueueDepths; };
  'GET /targets/signing-secrets': { path: unknown; query: { url: string }; body: unknown; response: SigningSecrets; };
  'POST /targets/test': { path: unknown; query: unknown; body: TargetTestIn; response: TargetTestResult; };
  'GET /tasks': { path: unknown; query: unknown; body: unknown; response: Page_TaskView_; };
  'POST /workers': { path: unknown; query: unknown; body: JoinIn; response: WorkerView; };
  'DELETE /workers/{worker}': { path: { worker: number }; query: unknown; body: unknown; response: unknown; };
  'POST /workers/{worker}/claim': { path: { worker: number }; query: unknown; body: ClaimIn; response: ClaimedJobs; };
  'POST /workers/{worker}/complete': { path: { worker: number }; query: unknown; body: CompletionsIn; response: ReportReply; };
  'POST /workers/{worker}/fail': { path: { worker: number }; query: unknown; body: FailuresIn; response: ReportReply; };
  'POST /workers/{worker}/heartbeat': { path: { worker: number }; query: unknown; body: WorkHeartbeatIn; response: HeartbeatReply; };
  'POST /workers/{worker}/output': { path: { worker: number }; query: unknown; body: OutputsIn; response: ReportReply; };
  'POST /workers/{worker}/release': { path: { worker: number }; query: unknown; body: ReleasesIn; response: ReportReply; };
  'POST /workers/{worker}/snooze': { path: { worker: number }; query: unknown; body: SnoozesIn; response: ReportReply; };
}
