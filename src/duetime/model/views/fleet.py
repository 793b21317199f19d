"""Queues, tasks, nodes, leases, keys, events and statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from duetime.model.api_key import PREFIX_LENGTH, ApiKey, Scope, listed
from duetime.model.instant import SECOND, Micros, to_datetime
from duetime.model.lease import Lease, Node, NodeState
from duetime.model.limit import Queue, QueueCounts, show_rate
from duetime.model.profile import NodeProfile
from duetime.model.views.fields import ANY_JSON, about, copied, moment
from duetime.model.views.jobs import DeliveryName, JobSummary

PREFIX: dict[str, Any] = {
    **about("The public part of the key.", "k3v9q2m7xw"),
    "json_schema_extra": {"pattern": f"^[0-9a-z]{{{PREFIX_LENGTH}}}$"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    name: str
    paused: bool = False
    pause_note: str | None = None
    paused_at: datetime | None = None
    max_running: int | None = None
    rate: str | None = None
    pending: int = 0
    due: int = 0
    running: int = 0

    @staticmethod
    def of(row: Queue, counts: QueueCounts | None) -> QueueView:
        return QueueView(
            name=row.name,
            paused=row.paused,
            pause_note=row.pause_note,
            paused_at=moment(row.paused_at),
            max_running=row.max_running,
            rate=None if row.rate is None else show_rate(row.rate),
            pending=0 if counts is None else counts.pending,
            due=0 if counts is None else counts.due,
            running=0 if counts is None else counts.running,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDepth:
    """The live jobs of a queue, at each time of the series."""

    name: str = field(metadata=about("other: all queues beyond the 100 largest."))
    pending: list[int | None] = field(metadata=about("null: not known."))
    due: list[int | None]
    running: list[int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDepths:
    """Queue depth over time."""

    times: list[datetime] = field(metadata=about("The beginnings of the steps."))
    queues: list[QueueDepth] = field(metadata=about("Those that had jobs, the largest first."))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentView:
    """An argument of a task."""

    name: str
    type: str | None = field(default=None, metadata=about("Its annotation, as written in the code.", "int"))
    required: bool = False
    default: Any = field(default=None, metadata=ANY_JSON)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """What a task declares. Jobs that set something else override it."""

    name: str
    queue: str | None = field(
        default=None, metadata=about("The queue of its jobs; null: its nodes have not published it yet.")
    )
    doc: str | None = field(default=None, metadata=about("The first line of its docstring."))
    arguments: list[ArgumentView] = field(default_factory=list)
    priority: int | None = None
    timeout: str | None = None
    retry: dict[str, Any] | None = None
    delivery: DeliveryName | None = None
    max_running: int | None = None
    rate: str | None = None
    limited_per: str | None = field(
        default=None, metadata=about("The limits apply to each value of this argument.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    id: int
    name: str
    state: NodeState = field(metadata=about("left: it ended in an orderly way; dead: it lost its lease."))
    roles: list[str]
    version: str
    running: int
    started_at: datetime
    lease_until: datetime
    broker: str | None = field(
        default=None,
        metadata=about("The address of its broker, without the password; only for the operator's tenant."),
    )
    permissions: dict[str, list[str]] | None = field(
        default=None,
        metadata=about(
            "What its operator allows it, by setting; null: not published. Only for the operator's tenant."
        ),
    )

    lacks: list[str] = field(
        default_factory=list, metadata=about("Of these, what other live workers have and it has not.")
    )

    clock_skew: float | None = field(
        default=None,
        metadata=about(
            "Seconds that its clock is ahead of the store's, from half a second on; only for the operator's "
            "tenant."
        ),
    )

    @staticmethod
    def of(
        row: Node,
        now: Micros,
        profile: NodeProfile | None = None,
        lacks: Sequence[str] = (),
        skew: Micros = 0,
    ) -> NodeView:
        """`profile`, `lacks` and `skew`: what only the operator's tenant sees."""
        allowed = None if profile is None else profile.permissions
        return NodeView(
            id=row.id,
            name=row.name,
            state=row.state(now),
            roles=list(row.roles),
            version=row.version,
            running=row.running or 0,
            started_at=to_datetime(row.started_at),
            lease_until=to_datetime(row.lease_until),
            broker=None if profile is None else profile.broker,
            permissions=None if allowed is None else {name: list(own) for name, own in allowed.items()},
            lacks=list(lacks),
            clock_skew=skew / SECOND or None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueMessages:
    """The messages of one queue and priority. Each names one or more jobs."""

    queue: str
    priority: int = field(metadata=about("The highest of the priorities that the broker counts together."))
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerView:
    """The broker as the process that answers sees it."""

    address: str | None = field(
        default=None, metadata=about("Without the password; null: this process was started without a broker.")
    )
    up: bool = field(default=False, metadata=about("Whether the broker answers."))
    remark: str | None = None
    depth: list[QueueMessages] = field(
        default_factory=list,
        metadata=about("Of the busiest 100 queues; those without messages are left out."),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseView:
    name: str
    holder: int | None = None
    token: int
    expires_at: datetime | None = None

    @staticmethod
    def of(row: Lease) -> LeaseView:
        return copied(LeaseView, row, expires_at=moment(row.expires_at))


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """The caller, as the service sees it."""

    tenant: str
    scopes: list[Scope]
    key: str | None = field(default=None, metadata=about("The prefix of the key; null in local mode."))
    local: bool = field(
        default=False,
        metadata=about("No key is needed: the service accepts requests from this machine only."),
    )
    version: str
    now: datetime
    expires_at: datetime | None = None
    trace_link: str | None = field(
        default=None, metadata=about("Where traces are shown: an address with {trace_id}.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyView:
    prefix: str = field(metadata=PREFIX)
    name: str
    scopes: list[Scope] = field(default_factory=list)
    tenant: str = "default"
    created_at: datetime
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    rate: str | None = None
    queues: list[str] = field(
        default_factory=list, metadata=about("That the scope work is limited to; empty: all.")
    )

    @staticmethod
    def of(row: ApiKey) -> KeyView:
        return KeyView(**_key(row))


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedKey(KeyView):
    key: str = field(repr=False, metadata=about("Shown only once.", "dt_k3v9q2m7xw_..."))

    @staticmethod
    def with_text(row: ApiKey, text: str) -> CreatedKey:
        return CreatedKey(**_key(row), key=text)


def _key(row: ApiKey) -> dict[str, Any]:
    """Everything except the digest."""
    return {
        "prefix": row.prefix,
        "name": row.name,
        "scopes": [Scope(name) for name in listed(row.scopes)],
        "tenant": row.tenant,
        "created_at": to_datetime(row.created_at),
        "expires_at": moment(row.expires_at),
        "last_used_at": moment(row.last_used_at),
        "revoked_at": moment(row.revoked_at),
        "rate": None if row.rate is None else show_rate(row.rate),
        "queues": list(row.queues),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class EventView:
    """`kind`: job, schedule, node or queue; many: a count of events that are not listed; reset: events were
    lost."""

    id: int | None
    kind: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCounts:
    """Jobs now; a count stops at 100,000."""

    pending: int = 0
    due: int = 0
    running: int = 0
    dead: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsPoint:
    """What ended in one step of the series. Times in milliseconds."""

    at: datetime
    succeeded: int = 0
    failed: int = 0
    retried: int = 0
    dead: int = 0
    cancelled: int = 0
    skipped: int = 0
    lateness_p50_ms: float | None = None
    lateness_p99_ms: float | None = None
    duration_p50_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingTarget:
    target: str
    failed: int
    last_error: str
    sample: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class NextFire:
    schedule_id: UUID
    name: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStoreView:
    """The read replica as the process that answers sees it."""

    lag_ms: float | None = field(
        default=None, metadata=about("How far it is behind the store; null: it does not answer.")
    )
    remark: str | None = field(
        default=None, metadata=about("Why it is not used now; null: lists and statistics come from it.")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    now: datetime
    live: LiveCounts
    series: list[StatsPoint] = field(default_factory=list)
    failing: list[FailingTarget] = field(default_factory=list)
    late: list[JobSummary] = field(default_factory=list, metadata=about("Due and not started, oldest first."))
    next: list[NextFire] = field(default_factory=list)
    leader: int | None = None
    read_store: ReadStoreView | None = field(
        default=None, metadata=about("null: the service has no read replica.")
    )
