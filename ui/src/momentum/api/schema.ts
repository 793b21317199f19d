// Written by tools/ui_types.py from the OpenAPI document. Change the API, then run `make ui`.

export type AccountList = { items: Array<AccountOut>; [key: string]: unknown };

export type AccountOut = { id: string; platform: string; author: AuthorOut; server: string; state: AccountState; scopes: Array<string>; expires_at: string | null; expires_soon: boolean; can_refresh: boolean; probe: boolean; scheduled_after_expiry: number; usage: UsageOut; max_text: number | null; [key: string]: unknown };

export type AccountPatchIn = { probe: boolean };

export type AccountState = "active" | "expired" | "disconnected";

export type ArticleIn = { url: string; title?: string; description?: string; thumbnail?: string | null };

export type AuthorKind = "member" | "organization";

export type AuthorOut = { urn: string; name: string; kind: AuthorKind; picture: string | null; handle: string | null; [key: string]: unknown };

export type CalendarDay = { date: string; count: number; states: { [key: string]: number }; posts: Array<SlimPost>; hours: { [key: string]: number }; [key: string]: unknown };

export type CalendarOut = { days: Array<CalendarDay>; [key: string]: unknown };

export type CheckOut = { problems: Array<ProblemItem>; length: number; max_length: number; fold_at: number | null; preview: PostPreview; [key: string]: unknown };

export type ConnectIn = { platform: string; server?: string | null };

export type ConnectOut = { url: string; [key: string]: unknown };

export type CountsOut = { drafts: number; scheduled: number; inbox: number; failed: number; [key: string]: unknown };

export type HintOut = { weekday: number; hour: number; posts: number; [key: string]: unknown };

export type HintsOut = { hints: Array<HintOut>; posts: number; reason: string | null; [key: string]: unknown };

export type HoldOut = { until: string | null; code: string; reason: string; [key: string]: unknown };

export type ImportOut = { rows: Array<ImportRowOut>; created: number; [key: string]: unknown };

export type ImportRowOut = { line: number; ok: boolean; post_id: string | null; problems: Array<ProblemItem>; [key: string]: unknown };

export type InboxItem = { kind: "unknown" | "failed" | "account" | "hold"; post?: PostOut | null; platform?: string | null; account_id?: string | null; reason: string; since?: string | null; until?: string | null; [key: string]: unknown };

export type InboxOut = { items: Array<InboxItem>; [key: string]: unknown };

export type LogItem = { id: string; post_id: string; account_id: string; number: number; version: number; scheduled_at: string; started_at: string; ended_at: string | null; outcome: Outcome | null; error_code: string | null; error: string | null; status: number | null; request_id: string | null; worker: string; lateness_ms: number; [key: string]: unknown };

export type LogPage = { items: Array<LogItem>; next: string | null; [key: string]: unknown };

export type MediaKind = "image" | "document" | "video";

export type MediaOut = { id: string; kind: MediaKind; type: string; name: string; size: number; width: number | null; height: number | null; seconds: number | null; pages: number | null; created_at: string; [key: string]: unknown };

export type MediaUseIn = { media_id: string; alt_text?: string; title?: string };

export type NewPostIn = { scheduled_at?: string | null; local_time?: string | null; zone?: string | null; account_id: string; text?: string; media?: Array<MediaUseIn>; article?: ArticleIn | null; visibility?: string; labels?: Array<string> };

export type Outcome = "published" | "retry" | "held" | "failed" | "unknown";

export type PlatformOut = { name: string; title: string; rules: { [key: string]: unknown }; notices: Array<string>; hold: HoldOut | null; usage: UsageOut; [key: string]: unknown };

export type PostOut = { id: string; account_id: string; platform: string; state: PostState; version: number; text: string; media: Array<MediaUseIn>; article: ArticleIn | null; visibility: string; scheduled_at: string | null; local_time: string | null; zone: string; labels: Array<string>; created_at: string; updated_at: string; published_at: string | null; platform_id: string | null; url: string | null; error_code: string | null; error: string | null; job_id: string | null; needs_reconnection: boolean; attempts: number; lateness_ms: number | null; note?: string | null; [key: string]: unknown };

export type PostPage = { items: Array<PostOut>; next: string | null; [key: string]: unknown };

export type PostPatchIn = { scheduled_at?: string | null; local_time?: string | null; zone?: string | null; version: number; account_id?: string | null; text?: string | null; media?: Array<MediaUseIn> | null; article?: ArticleIn | null; visibility?: string | null; labels?: Array<string> | null };

export type PostPreview = { text: string; visible: string; folded: boolean; scheduled_at?: string | null; note?: string | null; [key: string]: unknown };

export type PostState = "draft" | "scheduled" | "preparing" | "ready" | "publishing" | "published" | "failed" | "unknown" | "cancelled";

export type ProblemDocument = { type: string; title: string; status: number; detail: string; code: string; problems?: Array<ProblemItem>; [key: string]: unknown };

export type ProblemItem = { field: string; message: string; code: string; [key: string]: unknown };

export type ResolveIn = { decision: "published" | "not_published"; then?: "publish" | "draft" | "fail" | null; url?: string | null };

export type ScheduleIn = { scheduled_at?: string | null; local_time?: string | null; zone?: string | null; version?: number | null };

export type SessionIn = { key: string };

export type SessionOut = { tenant: string; name: string; [key: string]: unknown };

export type SlimPost = { id: string; account_id: string; platform: string; state: PostState; scheduled_at: string; title: string; media_kind: MediaKind | null; version: number; [key: string]: unknown };

export type StatusOut = { version: string; now: string; demo: boolean; auth: string; operator: boolean; platforms: Array<PlatformOut>; counts: CountsOut; [key: string]: unknown };

export type TimelineItem = { type: "event" | "attempt"; at: string; kind: string; detail: string; actor: string; number?: number | null; outcome?: Outcome | null; ended_at?: string | null; error_code?: string | null; status?: number | null; request_id?: string | null; [key: string]: unknown };

export type TimelineOut = { items: Array<TimelineItem>; [key: string]: unknown };

export type UsageOut = { today: number; limit: number | null; [key: string]: unknown };

export type VersionIn = { version?: number | null };

/** Every route with its parameters, request body and successful response. */
export interface Routes {
  'GET /accounts': { path: unknown; query: unknown; body: unknown; response: AccountList; };
  'POST /accounts/connect': { path: unknown; query: unknown; body: ConnectIn; response: ConnectOut; };
  'DELETE /accounts/{account_id}': { path: { account_id: string }; query: unknown; body: unknown; response: AccountOut; };
  'PATCH /accounts/{account_id}': { path: { account_id: string }; query: unknown; body: AccountPatchIn; response: AccountOut; };
  'POST /accounts/{account_id}/refresh': { path: { account_id: string }; query: unknown; body: unknown; response: AccountOut; };
  'GET /calendar': { path: unknown; query: { from: string; to: string; zone?: string; account?: string | null; state?: Array<PostState>; q?: string | null; label?: string | null; per_day?: number; per_hour?: number | null }; body: unknown; response: CalendarOut; };
  'GET /events': { path: unknown; query: unknown; body: unknown; response: unknown; };
  'GET /hints': { path: unknown; query: { account?: string | null; zone?: string }; body: unknown; response: HintsOut; };
  'GET /inbox': { path: unknown; query: unknown; body: unknown; response: InboxOut; };
  'GET /log': { path: unknown; query: { cursor?: string | null; limit?: number; from?: string | null; to?: string | null; post?: string | null; account?: string | null; outcome?: Outcome | null }; body: unknown; response: LogPage; };
  'GET /log.csv': { path: unknown; query: { from?: string | null; to?: string | null; post?: string | null; account?: string | null; outcome?: Outcome | null }; body: unknown; response: unknown; };
  'POST /media': { path: unknown; query: { name?: string }; body: unknown; response: MediaOut; };
  'DELETE /media/{media_id}': { path: { media_id: string }; query: unknown; body: unknown; response: unknown; };
  'GET /media/{media_id}': { path: { media_id: string }; query: unknown; body: unknown; response: MediaOut; };
  'GET /media/{media_id}/content': { path: { media_id: string }; query: unknown; body: unknown; response: unknown; };
  'GET /oauth/callback': { path: unknown; query: { state?: string; code?: string; error?: string }; body: unknown; response: unknown; };
  'POST /platforms/{name}/resume': { path: { name: string }; query: unknown; body: unknown; response: PlatformOut; };
  'GET /posts': { path: unknown; query: { state?: Array<PostState>; account?: string | null; platform?: string | null; from?: string | null; to?: string | null; q?: string | null; label?: string | null; cursor?: string | null; limit?: number }; body: unknown; response: PostPage; };
  'POST /posts': { path: unknown; query: unknown; body: NewPostIn; response: PostOut; };
  'POST /posts/check': { path: unknown; query: unknown; body: NewPostIn; response: CheckOut; };
  'POST /posts/import': { path: unknown; query: { dry_run?: boolean; partial?: boolean }; body: unknown; response: ImportOut; };
  'DELETE /posts/{post_id}': { path: { post_id: string }; query: unknown; body: unknown; response: unknown; };
  'GET /posts/{post_id}': { path: { post_id: string }; query: unknown; body: unknown; response: PostOut; };
  'PATCH /posts/{post_id}': { path: { post_id: string }; query: unknown; body: PostPatchIn; response: PostOut; };
  'POST /posts/{post_id}/cancel': { path: { post_id: string }; query: unknown; body: VersionIn; response: PostOut; };
  'POST /posts/{post_id}/check': { path: { post_id: string }; query: unknown; body: unknown; response: PostOut; };
  'POST /posts/{post_id}/duplicate': { path: { post_id: string }; query: unknown; body: unknown; response: PostOut; };
  'POST /posts/{post_id}/publish': { path: { post_id: string }; query: unknown; body: VersionIn; response: PostOut; };
  'POST /posts/{post_id}/resolve': { path: { post_id: string }; query: unknown; body: ResolveIn; response: PostOut; };
  'POST /posts/{post_id}/schedule': { path: { post_id: string }; query: unknown; body: ScheduleIn; response: PostOut; };
  'GET /posts/{post_id}/timeline': { path: { post_id: string }; query: unknown; body: unknown; response: TimelineOut; };
  'POST /posts/{post_id}/unschedule': { path: { post_id: string }; query: unknown; body: VersionIn; response: PostOut; };
  'DELETE /session': { path: unknown; query: unknown; body: unknown; response: unknown; };
  'POST /session': { path: unknown; query: unknown; body: SessionIn; response: SessionOut; };
  'GET /status': { path: unknown; query: unknown; body: unknown; response: StatusOut; };
}
