"""Counters of this process: by queue since it started, for its metrics; by minute and tenant, for the
statistics of the fleet."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter

from duetime.model.events import (
    AttemptsSettled,
    BrokerDepth,
    Event,
    FiresPlanned,
    JobChanged,
    JobsClaimed,
    JobsRecovered,
    JobsSubmitted,
    MessagesDropped,
    SettlementsRefused,
    TicketsPushed,
    TicketsReceived,
    TurnFailed,
)
from duetime.model.histogram import Histogram
from duetime.model.instant import MINUTE, Micros
from duetime.model.job import Claimed, Ending, State, error_line
from duetime.model.limit import MAX_QUEUES, OTHER
from duetime.model.settle import Settlement
from duetime.model.target import shown_name

MIN_MINUTES = 3  # kept, because a settlement may be written a little after its minute
MAX_MINUTES = 60  # kept while the store cannot be written
MAX_TARGETS = 20
MAX_NAMED = 100  # targets, and schedules, that are counted by name; the others count together
_place = itemgetter(Claimed._fields.index("tenant"), Claimed._fields.index("queue"))
_target = itemgetter(Claimed._fields.index("target"))
# Looked up once: every job compares with these, and looking up a member of an enum is slow.
_SUCCEEDED = Ending.SUCCEEDED
SUCCEEDED_ENDING, SUCCEEDED_STATE = Ending.SUCCEEDED.value, State.SUCCEEDED.value
FAILURES = frozenset({Ending.FAILED, Ending.TIMED_OUT, Ending.LOST})


class TargetFailures:
    """The failures of one target: how many, the last error, and the id of a job."""

    __slots__ = ("count", "error", "sample")

    def __init__(self, count: int, error: str, sample: str) -> None:
        self.count, self.error, self.sample = count, error, sample


class AttemptCounts:
    """How a number of attempts ended."""

    __slots__ = ("duration", "endings", "failing", "finished", "lateness", "retried")

    def __init__(self) -> None:
        self.endings: Counter[str] = Counter()
        self.finished: Counter[str] = Counter()  # jobs, by final state
        self.retried = 0
        self.lateness = Histogram()
        self.duration = Histogram()
        self.failing: dict[str, TargetFailures] = {}  # by target

    def succeed(self, lateness: list[Micros], duration: list[Micros]) -> None:
        self.endings[SUCCEEDED_ENDING] += len(duration)
        self.finished[SUCCEEDED_STATE] += len(duration)
        self.lateness.add(lateness)
        self.duration.add(duration)

    def end(self, one: Settlement, job: Claimed) -> None:
        self.endings[one.ending.value] += 1
        if one.state.final:
            self.finished[one.state.value] += 1
        elif one.ending in FAILURES:
            self.retried += 1
        if one.ending in FAILURES:
            self.fail(shown_name(job.target), TargetFailures(1, error_line(one.error or ""), str(one.id)))
        if one.started_at is not None:
            if one.started_at >= job.due_at:
                self.lateness.add((one.started_at - job.due_at,))
            if one.ending is not Ending.HANDED_OVER:
                self.duration.add((one.finished_at - one.started_at,))

    def merge(self, other: AttemptCounts) -> None:
        self.endings.update(other.endings)
        self.finished.update(other.finished)
        self.retried += other.retried
        self.lateness.merge(other.lateness)
        self.duration.merge(other.duration)
        for target, failing in other.failing.items():
            self.fail(target, failing)

    def fail(self, target: str, failing: TargetFailures) -> None:
        known = self.failing.get(target)
        if known is not None:
            known.count, known.error, known.sample = (
                known.count + failing.count,
                failing.error,
                failing.sample,
            )
        elif len(self.failing) < MAX_TARGETS:
            self.failing[target] = TargetFailures(failing.count, failing.error, failing.sample)


class ScheduleCounts:
    """The attempts of one schedule."""

    __slots__ = ("endings", "lateness")

    def __init__(self) -> None:
        self.endings: Counter[str] = Counter()
        self.lateness = Histogram()


class ProcessCounters:
    """An observer for the event loop of the node. Events of other threads only count as failed turns."""

    def __init__(self) -> None:
        self.queues: defaultdict[str, AttemptCounts] = defaultdict(AttemptCounts)
        self.minutes: dict[int, defaultdict[str, AttemptCounts]] = {}  # by tenant
        self.changed: set[tuple[int, str]] = set()  # minutes and tenants to be written
        self.targets: defaultdict[str, Counter[str]] = defaultdict(Counter)  # by target: endings
        self.schedules: defaultdict[tuple[str, str], ScheduleCounts] = defaultdict(ScheduleCounts)
        self.submitted: Counter[str] = Counter()
        self.claimed: Counter[str] = Counter()
        self.claiming = Histogram()
        self.settling = Histogram()
        self.planned = self.refused = self.recovered = 0
        self.skipped: Counter[tuple[str, str]] = Counter()  # by tenant and schedule: fires that were not run
        self.failed_turns: Counter[str] = Counter()
        self.tickets: Counter[str] = Counter()  # pushed, repeated, received, stale
        self.dropped_messages = 0
        self.broker_depth: Mapping[tuple[str, int], int] = {}

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
                self._minute(now, tenant).finished[State.CANCELLED.value] += 1
            case _:
                self._seldom(event, now)

    def minutes_of(self, tenant: str) -> dict[int, AttemptCounts]:
        return {minute: tenants[tenant] for minute, tenants in self.minutes.items() if tenant in tenants}

    def _seldom(self, event: Event, now: Micros) -> None:
        match event:
            case FiresPlanned():
                self.planned += event.jobs
                for schedule, firing in event.planned if event.skipped else ():
                    skipped = sum(fire.skip_reason is not None for fire in firing.fires)
                    if skipped:
                        self._skip(schedule.draft.tenant, schedule.draft.name, skipped)
                        self._minute(now, schedule.draft.tenant).finished[State.SKIPPED.value] += skipped
            case SettlementsRefused(job_ids):
                self.refused += len(job_ids)
            case TurnFailed(part):
                self.failed_turns[part] += 1
            case TicketsPushed():
                self.tickets.update(pushed=event.tickets, repeated=event.repeated)
            case TicketsReceived():
                self.tickets.update(received=event.tickets, stale=event.stale)
            case MessagesDropped(count):
                self.dropped_messages += count
            case BrokerDepth(messages):
                self.broker_depth = messages
            case _:
                pass

    def _settled(self, settlements: Sequence[Settlement], jobs: Sequence[Claimed]) -> None:
        self._count_targets(settlements, jobs)
        fires = [pair for pair in zip(settlements, jobs, strict=True) if pair[1].schedule is not None]
        for one, job in fires:
            self._count_fire(one, job)
        places = set(map(_place, jobs))
        if len(places) == 1:
            tenant, queue = places.pop()
            self._add(tenant, queue, settlements, jobs)
            return
        groups: dict[tuple[str, str], tuple[list[Settlement], list[Claimed]]] = {
            place: ([], []) for place in places
        }
        for one, job in zip(settlements, jobs, strict=True):
            group = groups[_place(job)]
            group[0].append(one)
            group[1].append(job)
        for (tenant, queue), group in groups.items():
            self._add(tenant, queue, *group)

    def _add(
        self, tenant: str, queue: str, settlements: Sequence[Settlement], jobs: Sequence[Claimed]
    ) -> None:
        """Nearly all attempts succeed: these are counted together, the others one by one."""
        known = queue if queue in self.queues or len(self.queues) < MAX_QUEUES else OTHER
        both = (self.queues[known], self._minute(settlements[-1].finished_at, tenant))
        good = [one for one in settlements if one.ending is _SUCCEEDED and one.started_at is not None]
        if good:
            # After a hand-over `due_at` is the deadline of the report, and the lateness of the start is
            # already counted.
            lateness = sorted([late for one in good if (late := one.started_at - one.due_at) >= 0])  # type: ignore[operator]
            duration = sorted([one.finished_at - one.started_at for one in good])  # type: ignore[operator]
            for counts in both:
                counts.succeed(lateness, duration)
        if len(good) < len(settlements):
            for one, job in zip(settlements, jobs, strict=True):
                if one.ending is not _SUCCEEDED or one.started_at is None:
                    if one.state is State.SKIPPED and job.schedule is not None:
                        self._skip(tenant, job.schedule, 1)
                    for counts in both:
                        counts.end(one, job)

    def _skip(self, tenant: str, schedule: str, count: int) -> None:
        name = (tenant, schedule)
        known = name in self.skipped or len(self.skipped) < MAX_NAMED
        self.skipped[name if known else ("", OTHER)] += count

    def _count_targets(self, settlements: Sequence[Settlement], jobs: Sequence[Claimed]) -> None:
        """Nearly all attempts succeed: these are counted together, the others one by one."""
        endings = [one.ending for one in settlements]
        if endings.count(_SUCCEEDED) < len(endings):
            for ending, job in zip(endings, jobs, strict=True):
                if ending is not _SUCCEEDED:
                    self.targets[_named(shown_name(job.target), self.targets)][ending.value] += 1
            jobs = [job for ending, job in zip(endings, jobs, strict=True) if ending is _SUCCEEDED]
        for target, count in Counter(map(_target, jobs)).items():
            self.targets[_named(shown_name(target), self.targets)][SUCCEEDED_ENDING] += count

    def _count_fire(self, one: Settlement, job: Claimed) -> None:
        name = (job.tenant, job.schedule or "")
        known = name in self.schedules or len(self.schedules) < MAX_NAMED
        counts = self.schedules[name if known else ("", OTHER)]
        counts.endings[one.ending.value] += 1
        if one.started_at is not None and one.started_at >= job.due_at:
            counts.lateness.add((one.started_at - job.due_at,))

    def _minute(self, at: Micros, tenant: str) -> AttemptCounts:
        minute = at // MINUTE
        tenants = self.minutes.get(minute)
        if tenants is None:
            minute, tenants = self._open(minute)
        self.changed.add((minute, tenant))
        return tenants[tenant]

    def _open(self, minute: int) -> tuple[int, defaultdict[str, AttemptCounts]]:
        """A new minute. One that was dropped before counts as the oldest minute there is."""
        if len(self.minutes) >= MIN_MINUTES:
            oldest = min(self.minutes)
            if minute < oldest:
                return oldest, self.minutes[oldest]
            if len(self.minutes) >= MAX_MINUTES or not any(changed == oldest for changed, _ in self.changed):
                self.changed -= {(oldest, tenant) for tenant in self.minutes.pop(oldest)}
        return minute, self.minutes.setdefault(minute, defaultdict(AttemptCounts))

    def _count(self, counter: Counter[str], queues: list[str]) -> None:
        for queue, found in Counter(queues).items():
            known = queue if queue in counter or len(counter) < MAX_QUEUES else OTHER
            counter[known] += found


def _named(name: str, known: Collection[str]) -> str:
    return name if name in known or len(known) < MAX_NAMED else OTHER
