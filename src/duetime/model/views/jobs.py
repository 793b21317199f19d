"""Jobs and dead letters, as the library, the API, its clients and the command line show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast
from uuid import UUID

from duetime.model.instant import to_datetime
from duetime.model.job import Attempt, Ending, Job, JobDraft, State
from duetime.model.output import KeptOutput
from duetime.model.schedule import policies, target
from duetime.model.trace import attempt_trace
from duetime.model.views.fields import ANY_JSON, TARGET, about, copied, decoded, moment

MAX_LISTED_PAYLOAD = 4_096
MAX_FAILURES = 1_000  # kept in the result of a bulk action
DeliveryName = Literal["at_least_once", "at_most_once"]
ConflictName = Literal["skipped", "replaced", "rescheduled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    """An attempt that did not succeed."""

    attempt: int
    ending: Ending
    node: int | None = None
    started_at: datetime | None = field(default=None, metadata=about("null: the attempt never started."))
    finished_at: datetime
    error: str | None = None
    result: Any = field(
        default=None,
        metadata=about("Of an HTTP target: the status, headers and first 4 KB of its response. Else null."),
    )

    @staticmethod
    def of(row: Attempt) -> AttemptView:
        return copied(
            AttemptView,
            row,
            started_at=moment(row.started_at),
            finished_at=to_datetime(row.finished_at),
            result=decoded(row.result),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputLine:
    """What a task logged, or its process printed."""

    number: int = field(metadata=about("From 1. A gap shows how many lines were left out."))
    at: datetime
    stream: Literal["log", "stdout", "stderr"]
    level: Literal["debug", "info", "warning", "error", "critical"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputView:
    """The output of one attempt: its first and last lines."""

    attempt: int
    lines: list[OutputLine]
    total: int = field(metadata=about("How many lines it printed, also those that were left out."))
    last: int = field(metadata=about("Ask for more lines with `after` = this number."))
    ended: bool = field(metadata=about("The attempt has ended: no more lines follow."))

    @staticmethod
    def of(output: KeptOutput, attempt: int, after: int, ended: bool) -> OutputView:
        lines = [
            OutputLine(
                number=line.number,
                at=to_datetime(line.at),
                stream=cast(Any, line.stream),
                level=cast(Any, line.level),
                text=line.text,
            )
            for line in output.lines
            if line.number > after
        ]
        last = lines[-1].number if lines else after
        return OutputView(attempt=attempt, lines=lines, total=output.total, last=last, ended=ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """A job without its result and attempts."""

    id: UUID
    state: State
    target: dict[str, Any] = field(metadata=TARGET)
    schedule: str | None = None
    fire_time: datetime
    due_at: datetime
    queue: str
    priority: int
    attempt: int = 0
    failures: int = 0
    node: int | None = None
    owner: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    unique_key: str | None = None
    retry_of: UUID | None = None
    cancel_requested: bool = False
    created_at: datetime
    claimed_at: datetime | None = field(
        default=None,
        metadata=about(
            "When a node claimed it for its latest attempt; it may wait on that node before it starts."
        ),
    )
    started_at: datetime | None = field(
        default=None,
        metadata=about(
            "When the latest attempt started: exact once it has ended; before, when a node claimed the job, "
            "or when it was due if that is later."
        ),
    )
    finished_at: datetime | None = None
    error: str | None = None
    disposition: str | None = None
    payload: Any = field(
        default=None,
        metadata={
            **ANY_JSON,
            **about("In lists null if `payload_bytes` is over 4,096: read the job to get it."),
        },
    )
    payload_bytes: int = field(default=0, metadata=about("The size of the payload as JSON."))

    @property
    def task(self) -> str | None:
        """The name of the task; None for other targets."""
        return self.target.get("name")

    @staticmethod
    def of(row: Job) -> JobSummary:
        payload = row.payload if len(row.payload) <= MAX_LISTED_PAYLOAD else None
        return JobSummary(**_summary(row), payload=decoded(payload))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView(JobSummary):
    """A job with its result and attempts."""

    timeout: str | None = None
    retry: dict[str, Any] | None = None
    delivery: DeliveryName = "at_least_once"
    expires: str | None = field(
        default=None, metadata=about("Until when it must start: after its due time, or an instant.")
    )
    losses: int = 0
    checkpoint: Any = field(default=None, metadata=ANY_JSON)
    progress: Any = field(default=None, metadata=ANY_JSON)
    result: Any = field(default=None, metadata=ANY_JSON)
    trace_id: str | None = field(
        default=None, metadata=about("Of the trace of the latest attempt; null before the first.")
    )
    attempts: list[AttemptView] = field(
        default_factory=list, metadata=about("Attempts that did not succeed, oldest first.")
    )

    @staticmethod
    def of(row: Job, attempts: Sequence[Attempt] = ()) -> JobView:
        return JobView(
            **_summary(row),
            **policies(row.policies),
            payload=decoded(row.payload),
            losses=row.losses,
            checkpoint=decoded(row.checkpoint),
            progress=decoded(row.progress),
            result=decoded(row.result),
            trace_id=(
                attempt_trace(row.id, row.attempt, row.policies).id.trace_text if row.attempt else None
            ),
            attempts=[AttemptView.of(attempt) for attempt in attempts],
        )


def _summary(row: Job) -> dict[str, Any]:
    return {
        "id": row.id,
        "state": row.state,
        "target": target(row.target, row.target_spec),
        "schedule": row.schedule,
        "fire_time": to_datetime(row.fire_time),
        "due_at": to_datetime(row.due_at),
        "queue": row.queue,
        "priority": row.priority,
        "attempt": row.attempt,
        "failures": row.failures,
        "node": row.node,
        "owner": row.owner,
        "labels": decoded(row.labels) or {},
        "unique_key": row.unique_key,
        "retry_of": row.retry_of,
        "cancel_requested": row.cancel_requested,
        "created_at": to_datetime(row.created_at),
        "claimed_at": moment(row.claimed_at),
        "started_at": moment(row.started_at),
        "finished_at": moment(row.finished_at),
        "error": row.error,
        "disposition": row.disposition,
        "payload_bytes": len(row.payload),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """A job that was accepted. It is durable."""

    id: UUID
    state: State
    created: bool = field(
        metadata=about("False: a job with the same unique key exists, and this is that job.")
    )
    conflict: ConflictName | None = field(
        default=None, metadata=about("What happened if the unique key was taken.")
    )
    queue: str
    priority: int
    fire_time: datetime
    due_at: datetime
    warning: str | None = field(default=None, metadata=about("No node has had its task so far."))

    @staticmethod
    def of(
        job_id: UUID, draft: JobDraft, known: Job | None, conflict: str | None, warning: str | None = None
    ) -> Submitted:
        """`known`: the job that holds the unique key; None if `draft` was stored."""
        row: Job | JobDraft = draft if known is None else known
        fire_time = to_datetime(row.fire_time)
        return Submitted(
            id=job_id,
            state=State.PENDING if known is None else known.state,
            created=known is None,
            conflict=cast(ConflictName | None, conflict),
            queue=row.queue,
            priority=row.priority,
            fire_time=fire_time,
            due_at=fire_time if row.due_at == row.fire_time else to_datetime(row.due_at),
            warning=warning,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmittedBatch:
    ids: list[UUID] = field(metadata=about("In the order of the request."))
    created: int = field(
        metadata=about("Number of new jobs; the other ids are of jobs that hold a unique key.")
    )
    warnings: list[str] = field(
        default_factory=list, metadata=about("One for each task that no node has had so far.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkFailure:
    id: str
    code: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkResult:
    """The result of one action on many jobs or schedules. Those that are already in the wanted state count as
    done."""

    matched: int = field(
        default=0, metadata=about("Number of items processed; in a dry run, the number that match.")
    )
    at_least: bool = field(
        default=False, metadata=about("Dry run: counting stopped at a limit, and there are more.")
    )
    done: int = 0
    failed: list[BulkFailure] = field(default_factory=list)
    next_cursor: str | None = field(
        default=None, metadata=about("There is more to do: repeat the request with this value as `cursor`.")
    )

    @staticmethod
    def of(result: Any, next_cursor: str | None = None) -> BulkResult:
        """From the result of one call of the app."""
        failed = [copied(BulkFailure, failure) for failure in result.failed]
        return copied(BulkResult, result, failed=failed, next_cursor=next_cursor)

    def followed_by(self, later: BulkResult) -> BulkResult:
        """Both results as one."""
        return BulkResult(
            matched=self.matched + later.matched,
            at_least=self.at_least or later.at_least,
            done=self.done + later.done,
            failed=(self.failed + later.failed)[:MAX_FAILURES],
            next_cursor=later.next_cursor,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroup:
    """Dead letters of one target with the same cause."""

    error: str = field(
        metadata=about(
            "Type, message with N for each number, id and quoted text, and place; GET /jobs finds them by "
            "`error_group`.",
            "ValueError: order N has no address (in ship, orders.py)",
        )
    )
    target: str = field(metadata={"examples": ["invoice.send"]})
    count: int
    oldest: datetime
    newest: datetime
    sample: UUID = field(metadata=about("The newest job of the group."))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadGroups:
    items: list[DeadGroup] = field(metadata=about("The largest group first."))
    complete: bool = field(
        default=True, metadata=about("False: there are older dead letters that were not counted.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyView:
    """Why a job or a schedule is in its present state."""

    code: str = field(metadata=about("Stable: programs may rely on it.", "queue_paused"))
    why: str = field(
        metadata={"examples": ["waits: queue billing has been paused since 09:12 UTC (database migration)"]}
    )
    since: datetime | None = None
    remedy: str | None = field(
        default=None, metadata=about("What to do about it, if anything.", "resume the queue")
    )

    @staticmethod
    def of(reason: Any) -> WhyView:
        return copied(WhyView, reason)
