"""Queues, tasks, nodes, leases, keys and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from duetime.engine.checks import check_name
from duetime.errors import KeyNotFound
from duetime.model.duration import Duration
from duetime.model.limit import Limit
from duetime.remote.calls.fields import given, instant, lapse
from duetime.remote.calls.paging import Page, everything, listed
from duetime.remote.reading import read
from duetime.remote.results import Calendar, Key, KnownTask, Lease, Me, NewKey, Node, Queue, Stats
from duetime.remote.talk import Talk, ask, part


def queues() -> Talk[list[Queue]]:
    """Every queue a job was ever stored under or that was set, by name, and what waits in it."""
    return (yield from everything(Page[Queue], "/queues"))


def pause_queue(name: str, note: str | None = None) -> Talk[Queue]:
    """Start nothing more of this queue, on any node; what runs goes on."""
    return read(Queue, (yield ask("POST", f"/queues/{part(check_name(name, 'queue'))}/pause", given(note=note))))


def resume_queue(name: str) -> Talk[Queue]:
    """Start its jobs again."""
    return read(Queue, (yield ask("POST", f"/queues/{part(check_name(name, 'queue'))}/resume")))


def limit_queue(name: str, most: int | None = None, rate: str | None = None) -> Talk[Queue]:
    """At most so many of its jobs at once and so many starts in a period ("100/1m"), over all nodes; what is None is not limited."""
    if most is not None or rate is not None:
        Limit(most, rate=rate)  # refuses what cannot be meant
    return read(Queue, (yield ask("POST", f"/queues/{part(check_name(name, 'queue'))}/limit", {"most": most, "rate": rate})))


def known_tasks() -> Talk[list[KnownTask]]:
    """The names a job can be submitted under: of tasks that the service or a living node knows."""
    return (yield from everything(Page[KnownTask], "/tasks"))


def nodes() -> Talk[list[Node]]:
    """The processes of the fleet, living and recently dead."""
    return (yield from everything(Page[Node], "/nodes"))


def leases() -> Talk[list[Lease]]:
    """Who plans and who leads."""
    return (yield from everything(Page[Lease], "/leases"))


def stats(since: Duration | None = None, step: Duration | None = None) -> Talk[Stats]:
    """What was done lately, what waits, what fails and what comes next."""
    return read(Stats, (yield ask("GET", "/stats", query={"since": lapse(since, "since"), "step": lapse(step, "step")})))


def calendar(start: datetime, end: datetime, *, bucket: Duration | None = None, tz: str | None = None) -> Talk[Calendar]:
    """How many fires are to come in each stretch of time."""
    query = {"from": instant(start, "from"), "to": instant(end, "to"), "bucket": lapse(bucket, "bucket"), "tz": tz}
    return read(Calendar, (yield ask("GET", "/calendar", query=query)))


def me() -> Talk[Me]:
    """Who the service takes this client for, and what it may do."""
    return read(Me, (yield ask("GET", "/me")))


def keys(*, limit: int = 1_000) -> Talk[list[Key]]:
    """Keys of this tenant, revoked ones too; never the keys themselves."""
    return (yield from listed(Page[Key], "/keys", limit))


def create_key(
    name: str, scopes: Sequence[str], *, expires_in: Duration | None = None, tenant: str | None = None, rate: str | None = None
) -> Talk[NewKey]:
    """A new API key; its text is in the answer this once and never again."""
    body = given(name=name, scopes=list(scopes), expires_in=lapse(expires_in, "expires_in"), tenant=tenant, rate=rate)
    # Its answer cannot be given twice, so a lost one is not asked for again: that would be a second key.
    return read(NewKey, (yield ask("POST", "/keys", body, again=False)))


def revoke_key(prefix: str) -> Talk[None]:
    """End a key, within seconds everywhere."""
    yield ask("DELETE", f"/keys/{part(prefix)}", done=(KeyNotFound.code,))
