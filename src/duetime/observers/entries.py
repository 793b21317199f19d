"""What the log of events says: one small JSON document for each thing that happened, with the tenant it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from duetime.model.attempt import Ending
from duetime.model.codec import decode, encode
from duetime.model.events import (
    AttemptsSettled,
    Event,
    FiresPlanned,
    JobChanged,
    JobsClaimed,
    JobsRecovered,
    JobsSubmitted,
    NodeFenced,
    NodeJoined,
    NodeLeft,
    NodesBuried,
    QueueChanged,
    ScheduleChanged,
)
from duetime.model.instant import Micros
from duetime.model.job import State
from duetime.model.settle import Settlement

KINDS = ("job", "schedule", "node", "queue")
MANY = "many"  # so many that they were only counted
GAP = "gap"  # nobody listened until here, so that nothing was written
TOLD = frozenset({
    AttemptsSettled, JobsClaimed, JobsSubmitted, FiresPlanned, JobChanged, JobsRecovered, ScheduleChanged, QueueChanged, NodeJoined,
    NodeLeft, NodeFenced, NodesBuried,
})  # fmt: skip
FEW = frozenset({ScheduleChanged, QueueChanged, NodeJoined, NodeLeft, NodeFenced, NodesBuried})  # of what there are never many for long
RETRIES = frozenset({Ending.FAILED, Ending.TIMED_OUT, Ending.LOST})


class Entry(NamedTuple):
    kind: str
    tenant: str | None  # None: everybody may know
    data: dict[str, Any]  # `at` in microseconds

    def to_bytes(self) -> bytes:
        return encode([self.kind, self.tenant, self.data])

    @staticmethod
    def from_bytes(line: bytes) -> Entry:
        return Entry(*decode(line))


def entries_of(event: Event, now: Micros) -> Iterator[Entry]:
    match event:
        case JobsSubmitted(drafts, stored):
            for draft, own in zip(drafts, stored, strict=True):
                if draft.id == own:
                    yield _job("submitted", draft, State.PENDING, now)
        case JobsClaimed(jobs):
            for job in jobs:
                yield _job("started", job, State.RUNNING, now)
        case AttemptsSettled(settlements, jobs) | JobsRecovered(_, settlements, jobs):
            for settlement, job in zip(settlements, jobs, strict=True):
                yield _job(_ending(settlement), job, settlement.state, settlement.finished_at)
        case JobChanged(tenant, job_id, action):
            state = {"state": State.CANCELLED.value} if action == "cancelled" else {}
            yield Entry("job", tenant, {"action": action, "id": str(job_id), **state, "at": now})
        case FiresPlanned():
            yield from _planned(event, now)
        case ScheduleChanged(schedule, change):
            own_data = {"name": schedule.draft.name, "queue": schedule.draft.queue}
            yield Entry("schedule", schedule.draft.tenant, {"action": change.value, "id": str(schedule.id), **own_data, "at": now})
        case _:
            yield from _of_the_fleet(event, now)


def _of_the_fleet(event: Event, now: Micros) -> Iterator[Entry]:
    match event:
        case QueueChanged(queue):
            action = "paused" if queue.paused else "resumed"
            yield Entry("queue", None, {"action": action, "id": queue.name, "name": queue.name, "queue": queue.name, "at": now})
        case NodeJoined(node):
            yield _node("joined", node, now)
        case NodeLeft(node):
            yield _node("left", node, now)
        case NodeFenced(node):
            yield _node("fenced", node, now)
        case NodesBuried(nodes):
            for node in nodes:
                yield _node("died", node, now)
        case _:
            pass


def many(tenant: str | None, count: int, now: Micros) -> Entry:
    return Entry(MANY, tenant, {"action": MANY, "count": count, "at": now})


def gap(now: Micros) -> Entry:
    return Entry(GAP, None, {"at": now})


def _job(action: str, job: Any, state: State, at: Micros) -> Entry:
    """Of a draft or a claimed job."""
    data = {"action": action, "id": str(job.id), "name": job.target, "state": state.value, "queue": job.queue}
    if job.schedule is not None:
        data["schedule"] = job.schedule
    return Entry("job", job.tenant, {**data, "at": at})


def _ending(settlement: Settlement) -> str:
    if settlement.state is State.PENDING and settlement.ending in RETRIES:
        return "retrying"
    return settlement.ending.value if settlement.state in (State.PENDING, State.RUNNING) else settlement.state.value


def _planned(event: FiresPlanned, now: Micros) -> Iterator[Entry]:
    for schedule, firing in event.planned:
        draft = schedule.draft
        for fire in firing.fires:
            state, action = (State.PENDING, "planned") if fire.skip_reason is None else (State.SKIPPED, "skipped")
            data = {"action": action, "id": str(fire.id), "name": draft.target, "state": state.value, "queue": draft.queue}
            yield Entry("job", draft.tenant, {**data, "schedule": draft.name, "at": now})


def _node(action: str, node: int, now: Micros) -> Entry:
    return Entry("node", None, {"action": action, "id": str(node), "at": now})


def is_empty(event: Event) -> bool:
    """A claim or a settlement of no jobs: they come all the time, and there is nothing to tell."""
    return isinstance(event, JobsClaimed | AttemptsSettled) and not event.jobs


def tenants_of(event: Event) -> list[str | None]:
    """The tenant of each entry the event would make, for the entries that are only counted."""
    match event:
        case JobsClaimed(jobs) | AttemptsSettled(_, jobs) | JobsRecovered(_, _, jobs):
            return [job.tenant for job in jobs]
        case JobsSubmitted(drafts):
            return [draft.tenant for draft in drafts]
        case _:
            return [entry.tenant for entry in entries_of(event, 0)]
