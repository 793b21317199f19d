"""Counts what this process does: since it began by queue, for its metrics; and by minute and tenant, for the statistics of the fleet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter

from duetime.model.attempt import Ending
from duetime.model.events import (
    AttemptsSettled,
    Event,
    FiresPlanned,
    JobChanged,
    JobsClaimed,
    JobsRecovered,
    JobsSubmitted,
    SettlementsRefused,
    TurnFailed,
)
from duetime.model.histogram import Histogram
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed, State
from duetime.model.settle import Settlement

MINUTE = 60 * SECOND
MINUTES_KEPT = 3  # a settlement may be written a little after its minute
MOST_MINUTES = 60  # that could not be written down
MOST_QUEUES = 100
OTHER = "other"  # queues beyond that
MOST_TARGETS = 20
LONGEST_ERROR = 200
_place = itemgetter(Claimed._fields.index("tenant"), Claimed._fields.index("queue"))
# Looked up once: comparing with a member of an enum is needed for every job.
_SUCCEEDED = Ending.SUCCEEDED
ENDED_WELL, SUCCEEDED = Ending.SUCCEEDED.value, State.SUCCEEDED.value
FAILURES = frozenset({Ending.FAILED, Ending.TIMED_OUT, Ending.LOST})


class Failing:
    """What went wrong with one target."""

    __slots__ = ("count", "error", "sample")

    def __init__(self, count: int, error: str, sample: str) -> None:
        self.count, self.error, self.sample = count, error, sample


class Cell:
    """What came of some attempts."""

    __slots__ = ("duration", "endings", "failing", "finished", "lateness", "retried")

    def __init__(self) -> None:
        self.endings: Counter[str] = Counter()
        self.finished: Counter[str] = Counter()  # jobs, by final state
        self.retried = 0
        self.lateness = Histogram()
        self.duration = Histogram()
        self.failing: dict[str, Failing] = {}  # by target

    def succeed(self, lateness: list[Micros], duration: list[Micros]) -> None:
        self.endings[ENDED_WELL] += len(duration)
        self.finished[SUCCEEDED] += len(duration)
        self.lateness.add(lateness)
        self.duration.add(duration)

    def end(self, one: Settlement, job: Claimed) -> None:
        self.endings[one.ending.value] += 1
        if one.state.final:
            self.finished[one.state.value] += 1
        elif one.ending in FAILURES:
            self.retried += 1
        if one.ending in FAILURES:
            self.fail(job.target, Failing(1, last_line(one.error), str(one.id)))
        if one.started_at is not None:
            if one.started_at >= job.due_at:
                self.lateness.add((one.started_at - job.due_at,))
            if one.ending is not Ending.HANDED_OVER:
                self.duration.add((one.finished_at - one.started_at,))

    def merge(self, other: Cell) -> None:
        self.endings.update(other.endings)
        self.finished.update(other.finished)
        self.retried += other.retried
        self.lateness.merge(other.lateness)
        self.duration.merge(other.duration)
        for target, failing in other.failing.items():
            self.fail(target, failing)

    def fail(self, target: str, failing: Failing) -> None:
        known = self.failing.get(target)
        if known is not None:
            known.count, known.error, known.sample = known.count + failing.count, failing.error, failing.sample
        elif len(self.failing) < MOST_TARGETS:
            self.failing[target] = Failing(failing.count, failing.error, failing.sample)


class Tally:
    """An observer. Called on the event loop of the node; of what other threads tell it only counts failed turns."""

    def __init__(self) -> None:
        self.queues: dict[str, Cell] = {}
        self.minutes: dict[int, dict[str, Cell]] = {}
        self.changed: set[tuple[int, str]] = set()  # minutes and tenants to be written down
        self.submitted: Counter[str] = Counter()
        self.claimed: Counter[str] = Counter()
        self.claiming = Histogram()
        self.settling = Histogram()
        self.planned = self.skipped = self.refused = self.recovered = 0
        self.failed_turns: Counter[str] = Counter()

    def __call__(self, event: Event, now: Micros) -> None:
        match event:
            case AttemptsSettled():
                if event.lapse:
                    self.settling.add((event.lapse,))
                self._settled(event.settlements, event.jobs)
            case JobsClaimed():
                self.claiming.add((event.lapse,))
                if event.jobs:
                    self._count(self.claimed, [job.queue for job in event.jobs])
            case JobsSubmitted():
                stored = zip(event.drafts, event.stored, strict=True)
                self._count(self.submitted, [draft.queue for draft, own in stored if draft.id == own])
            case JobsRecovered():
                self.recovered += event.count
                self._settled(event.settlements, event.jobs)
            case JobChanged(tenant, _, "cancelled"):
                self._cell(now, tenant).finished[State.CANCELLED.value] += 1
            case _:
                self._seldom(event, now)

    def minutes_of(self, tenant: str) -> dict[int, Cell]:
        return {minute: tenants[tenant] for minute, tenants in self.minutes.items() if tenant in tenants}

    def _seldom(self, event: Event, now: Micros) -> None:
        match event:
            case FiresPlanned():
                self.planned += event.jobs
                self.skipped += event.skipped
                for schedule, firing in event.planned if event.skipped else ():
                    skipped = sum(fire.skip_reason is not None for fire in firing.fires)
                    if skipped:
                        self._cell(now, schedule.draft.tenant).finished[State.SKIPPED.value] += skipped
            case SettlementsRefused(job_ids):
                self.refused += len(job_ids)
            case TurnFailed(part):
                self.failed_turns[part] += 1
            case _:
                pass

    def _settled(self, settlements: Sequence[Settlement], jobs: Sequence[Claimed]) -> None:
        places = set(map(_place, jobs))
        if len(places) == 1:
            tenant, queue = places.pop()
            self._add(tenant, queue, settlements, jobs)
            return
        groups: dict[tuple[str, str], tuple[list[Settlement], list[Claimed]]] = {place: ([], []) for place in places}
        for one, job in zip(settlements, jobs, strict=True):
            group = groups[_place(job)]
            group[0].append(one)
            group[1].append(job)
        for (tenant, queue), group in groups.items():
            self._add(tenant, queue, *group)

    def _add(self, tenant: str, queue: str, settlements: Sequence[Settlement], jobs: Sequence[Claimed]) -> None:
        """Nearly all succeed: they are counted together, the others one by one."""
        cells = (self._queue(queue), self._cell(settlements[-1].finished_at, tenant))
        good = [one for one in settlements if one.ending is _SUCCEEDED and one.started_at is not None]
        if good:
            # Of what was handed over and reported on `due_at` was the deadline: how late it began has been counted.
            lateness = sorted([late for one in good if (late := one.started_at - one.due_at) >= 0])  # type: ignore[operator]  # they started
            duration = sorted([one.finished_at - one.started_at for one in good])  # type: ignore[operator]  # the same
            for cell in cells:
                cell.succeed(lateness, duration)
        if len(good) < len(settlements):
            for one, job in zip(settlements, jobs, strict=True):
                if one.ending is not _SUCCEEDED or one.started_at is None:
                    for cell in cells:
                        cell.end(one, job)

    def _queue(self, queue: str) -> Cell:
        queue = self._known(queue)
        cell = self.queues.get(queue)
        if cell is None:
            cell = self.queues[queue] = Cell()
        return cell

    def _known(self, queue: str) -> str:
        return queue if queue in self.queues or len(self.queues) < MOST_QUEUES else OTHER

    def _cell(self, at: Micros, tenant: str) -> Cell:
        minute = at // MINUTE
        tenants = self.minutes.get(minute)
        if tenants is None:
            minute, tenants = self._open(minute)
        self.changed.add((minute, tenant))
        cell = tenants.get(tenant)
        if cell is None:
            cell = tenants[tenant] = Cell()
        return cell

    def _open(self, minute: int) -> tuple[int, dict[str, Cell]]:
        """A new minute; what belongs to one that is gone counts for the oldest there is."""
        if len(self.minutes) >= MINUTES_KEPT:
            oldest = min(self.minutes)
            if minute < oldest:
                return oldest, self.minutes[oldest]
            if len(self.minutes) >= MOST_MINUTES or not any(changed == oldest for changed, _ in self.changed):
                self.changed -= {(oldest, tenant) for tenant in self.minutes.pop(oldest)}
        return minute, self.minutes.setdefault(minute, {})

    def _count(self, counter: Counter[str], queues: list[str]) -> None:
        for queue, found in Counter(queues).items():
            known = queue if queue in counter or len(counter) < MOST_QUEUES else OTHER
            counter[known] += found


def last_line(error: str | None) -> str:
    """What went wrong, without where."""
    return (error or "").strip().rpartition("\n")[2][:LONGEST_ERROR]
