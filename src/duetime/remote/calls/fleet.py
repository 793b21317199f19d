"""Queues, tasks, nodes, leases, keys and statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from duetime.engine.submit.validate import check_name
from duetime.errors import KeyNotFound
from duetime.model.duration import Duration
from duetime.model.limit import check_max_running, parse_rate
from duetime.model.views import (
    BrokerView,
    CalendarView,
    CreatedKey,
    KeyView,
    LeaseView,
    Me,
    NodeView,
    Page,
    QueueDepths,
    QueueView,
    Stats,
    TaskView,
)
from duetime.remote.calls.fields import duration_text, everything, given, instant, listed
from duetime.remote.request import Call, path_part, read, request


def queues(*, limit: int = 1_000, after: str | None = None) -> Call[list[QueueView]]:
    """Queues by name, with their limits and the number of their jobs; `after` is the last name already
    seen."""
    later: Callable[[QueueView], bool] | None = None if after is None else lambda one: one.name > after
    return (yield from listed(Page[QueueView], "/queues", limit, {}, later))


def pause_queue(name: str, note: str | None = None) -> Call[QueueView]:
    """Start no more jobs of this queue, on any node; running jobs continue."""
    return read(
        QueueView,
        (yield request("POST", f"/queues/{path_part(check_name(name, 'queue'))}/pause", given(note=note))),
    )


def resume_queue(name: str) -> Call[QueueView]:
    """Start jobs of a paused queue again."""
    return read(QueueView, (yield request("POST", f"/queues/{path_part(check_name(name, 'queue'))}/resume")))


def limit_queue(name: str, max_running: int | None = None, rate: str | None = None) -> Call[QueueView]:
    """Limit the running jobs of a queue and the rate of its starts ("100/1m"), across all nodes. None: no
    limit."""
    check_max_running(max_running, "max_running")
    if rate is not None:
        parse_rate(rate, "rate")
    return read(
        QueueView,
        (
            yield request(
                "POST",
                f"/queues/{path_part(check_name(name, 'queue'))}/limit",
                {"max_running": max_running, "rate": rate},
            )
        ),
    )


def known_tasks() -> Call[list[TaskView]]:
    """The tasks that the service or a living node knows."""
    return (yield from everything(Page[TaskView], "/tasks"))


def nodes() -> Call[list[NodeView]]:
    """The nodes, living and recently dead."""
    return (yield from everything(Page[NodeView], "/nodes"))


def broker() -> Call[BrokerView]:
    """The broker as the service sees it, and the messages in it; only for keys of the operator's tenant."""
    return read(BrokerView, (yield request("GET", "/broker")))


def leases() -> Call[list[LeaseView]]:
    """The leases of planners, of dispatchers and of the leader."""
    return (yield from everything(Page[LeaseView], "/leases"))


def stats(since: Duration | None = None, step: Duration | None = None) -> Call[Stats]:
    """Counts of jobs, a series of the recent past, failing targets, late jobs and the next fires."""
    return read(Stats, (yield request("GET", "/stats", query=_span(since, step))))


def queue_depth(since: Duration | None = None, step: Duration | None = None) -> Call[QueueDepths]:
    """How many jobs the queues had in the recent past; only for keys of the operator's tenant."""
    return read(QueueDepths, (yield request("GET", "/stats/queues", query=_span(since, step))))


def _span(since: Duration | None, step: Duration | None) -> dict[str, str | None]:
    return {"since": duration_text(since, "since"), "step": duration_text(step, "step")}


def calendar(
    start: datetime, end: datetime, *, bucket: Duration | None = None, tz: str | None = None
) -> Call[CalendarView]:
    """The number of future fires in each bucket of time."""
    query = {
        "from": instant(start, "from"),
        "to": instant(end, "to"),
        "bucket": duration_text(bucket, "bucket"),
        "tz": tz,
    }
    return read(CalendarView, (yield request("GET", "/calendar", query=query)))


def me() -> Call[Me]:
    """The tenant and the scopes of this client."""
    return read(Me, (yield request("GET", "/me")))


def keys(*, limit: int = 1_000) -> Call[list[KeyView]]:
    """The keys of this tenant, also revoked ones, without their secrets."""
    return (yield from listed(Page[KeyView], "/keys", limit))


def create_key(
    name: str,
    scopes: Sequence[str],
    *,
    expires_in: Duration | None = None,
    tenant: str | None = None,
    rate: str | None = None,
    queues: Sequence[str] = (),
) -> Call[CreatedKey]:
    """Create an API key. Only this answer contains its text."""
    body = given(
        name=name,
        scopes=list(scopes),
        expires_in=duration_text(expires_in, "expires_in"),
        tenant=tenant,
        rate=rate,
        queues=list(queues) or None,
    )
    # Not repeated: the service does not store the answer, so a second request would create a second key.
    return read(CreatedKey, (yield request("POST", "/keys", body, repeatable=False)))


def revoke_key(prefix: str) -> Call[None]:
    """Revoke a key. Running services reject it within seconds."""
    yield request("DELETE", f"/keys/{path_part(prefix)}", done=(KeyNotFound.code,))
