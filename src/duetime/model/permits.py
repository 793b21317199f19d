"""Permits: which of the jobs that are due may start now. The policy of limits, rates, fairness and overlap,
decided once.

A job needs a permit for its limit key while its task has a limit, and a permit for its schedule while the
schedule runs one job at a time. A running job *is* the permit: nothing is counted twice and a crash leaves
nothing to repair. A due job without a permit leaves the claim index and waits for the permit by name.
Settling a job passes its permit directly to the best job that waits for it.

A store reads the candidates and the `Usage`, calls `decide`, and executes the `Decision`, all in one
transaction that other claims of the same names wait for."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from duetime.model.instant import SECOND, Micros
from duetime.model.job import DEFAULT_TENANT, JobDraft, Overlap
from duetime.model.limit import UNLIMITED, Queue, TaskLimit

# Jobs of one limit key that stay claimable; the others wait behind them, so that a flood hides nothing
READY_PER_KEY = 16
MIN_ASK_INTERVAL = SECOND // 50  # a job held up by a fast rate asks again when several starts are earned
SUPERSEDED = "a later job of its schedule starts"  # why `cancel_previous` cancels
ASK_OVERDUE = SECOND  # the job that was to ask for the next start of a rate did not: another may


def schedule_permit(schedule_id: UUID) -> str:
    """The name of the permit of a schedule that runs one job at a time. Limit keys never begin with a
    slash."""
    return f"/{schedule_id}"


class Candidate(NamedTuple):
    """A pending job that is due, or will be within the prefetch."""

    id: UUID
    queue: str
    priority: int
    due_at: Micros
    fire_time: Micros
    attempt: int
    target: str
    limit_key: str | None
    schedule_id: UUID | None
    overlap: str | None
    tenant: str = DEFAULT_TENANT


class KeyUse(NamedTuple):
    """How much of a limit key is in use."""

    permits: int = 0  # distinct permits among its running jobs
    spent_until: Micros = 0  # of the rate: starts so far are paid for until this instant
    asks_at: Micros = 0  # a job that the rate holds up asks again at this instant
    served_at: Micros = 0  # the last start of it while others had to wait for room


class QueueUse(NamedTuple):
    """How much of a queue with limits of its own is in use."""

    queue: Queue
    running: int
    spent_until: Micros

    def vacancies(self, now: Micros) -> int | None:
        """How many more of its jobs may start now; None for any number."""
        limit, rate = self.queue.max_running, self.queue.rate
        bounds = [] if limit is None else [max(0, limit - self.running)]
        bounds += [] if rate is None else [rate.allowed(self.spent_until, now)]
        return min(bounds, default=None)


@dataclass(slots=True)
class Usage:
    """What is in use among the names that the candidates need. Read under the locks that other claims of
    these names wait for."""

    now: Micros
    limits: Mapping[str, TaskLimit] = field(default_factory=dict)  # by target
    keys: Mapping[str, KeyUse] = field(default_factory=dict)  # by limit key
    # Candidate -> another job of its schedule that has started, not finished
    rivals: Mapping[UUID, UUID] = field(default_factory=dict)
    queues: Mapping[str, QueueUse] = field(default_factory=dict)  # those with limits of their own


@dataclass(slots=True)
class Decision:
    """What a store does with the candidates. A candidate that appears nowhere stays as it is."""

    # Become running, in this order; those with a limit key under a new permit each
    start: list[UUID] = field(default_factory=list)
    # Leave the claim index until the named permit is passed on
    wait: dict[UUID, str] = field(default_factory=dict)
    ask_at: dict[UUID, Micros] = field(default_factory=dict)  # held up by a rate: due again at this instant
    skip: dict[UUID, UUID] = field(default_factory=dict)  # end as skipped; the value is the job in the way
    cancel: set[UUID] = field(default_factory=set)  # started jobs that `cancel_previous` asks to stop
    left: list[UUID] = field(default_factory=list)  # there is no room for them: another node may take them
    # Changed: `spent_until`, `asks_at` and `served_at` to be stored
    keys: dict[str, KeyUse] = field(default_factory=dict)
    queues: dict[str, Micros] = field(default_factory=dict)  # changed rates: `spent_until` to be stored
    # So many that wait for this name become claimable again, best first
    promote: dict[str, int] = field(default_factory=dict)

    @property
    def set_aside(self) -> bool:
        """Some candidates left the claim index: there may be others behind them."""
        return bool(self.wait or self.skip)


def decide(
    candidates: Sequence[Candidate], usage: Usage, room: int, permits: int, keyed_first: bool = False
) -> Decision:
    """At most `room` jobs start, at most `permits` of them with a limit key."""
    judge = _Judge(usage, room, permits)
    for job in in_turns(candidates, usage.keys, keyed_first):
        judge.consider(job)
    judge.finish()
    return judge.decision


def skip_reason(in_the_way: UUID) -> str:
    return f"overlap: job {in_the_way} has started and not finished"


def promotable(limit: TaskLimit, use: KeyUse, now: Micros) -> int:
    """How many jobs that wait for a limit key a sweep makes claimable again: the settlement or claim that
    should have done it may be lost."""
    if limit.rate is not None and use.asks_at > now - ASK_OVERDUE:
        return 0
    free = READY_PER_KEY if limit.max_running is None else min(READY_PER_KEY, limit.max_running - use.permits)
    return max(0, min(free, 1) if limit.rate is not None else free)


def waiting_when_stored(drafts: Iterable[JobDraft], now: Micros) -> dict[UUID, str]:
    """Of jobs stored together no more than READY_PER_KEY of a limit key are claimable from the start; the
    others, if due, wait for them."""
    due = [
        draft
        for draft in drafts
        if draft.limit_key is not None and draft.overlap is None and draft.due_at <= now
    ]
    ready: Counter[str] = Counter()
    waiting: dict[UUID, str] = {}
    for draft in (
        sorted(due, key=lambda draft: (-draft.priority, draft.due_at)) if len(due) > READY_PER_KEY else ()
    ):
        key = str(draft.limit_key)
        ready[key] += 1
        if ready[key] > READY_PER_KEY:
            waiting[draft.id] = key
    return waiting


def in_turns(
    candidates: Sequence[Candidate], keys: Mapping[str, KeyUse], keyed_first: bool
) -> Iterator[Candidate]:
    """Lanes in the order given. Within a lane each limit key, and the jobs without one, take turns, one job a
    turn: first the key that was served longest ago. Claims alternate whether jobs without a key go first or
    last."""

    def order(key: str | None) -> tuple[bool, Micros]:
        return (key is None) is keyed_first, 0 if key is None or key not in keys else keys[key].served_at

    lanes: dict[tuple[str, int, str], dict[str | None, deque[Candidate]]] = {}
    for job in _oldest_fire_first(candidates):
        lane = (job.queue, job.priority, job.tenant)
        lanes.setdefault(lane, {}).setdefault(job.limit_key, deque()).append(job)
    for by_key in lanes.values():
        groups = [by_key[key] for key in sorted(by_key, key=order)]
        while groups:
            yield from [group.popleft() for group in groups]
            groups = [group for group in groups if group]


def _oldest_fire_first(candidates: Sequence[Candidate]) -> Iterable[Candidate]:
    """Jobs of a schedule that runs one at a time: those that have started before, then by fire time. Others
    keep their places."""
    alone = [job for job in candidates if job.overlap is not None]
    if len(alone) < 2:
        return candidates
    queues: dict[UUID | None, deque[Candidate]] = {}
    for job in sorted(alone, key=lambda job: (job.attempt == 0, job.fire_time, job.id)):
        queues.setdefault(job.schedule_id, deque()).append(job)
    return [job if job.overlap is None else queues[job.schedule_id].popleft() for job in candidates]


class _Judge:
    def __init__(self, usage: Usage, room: int, permits: int) -> None:
        self.decision = Decision()
        self._usage = usage
        self._now = usage.now
        self._room = room
        self._permits = permits
        self._keys = dict(usage.keys)
        self._started: dict[UUID | None, UUID] = {}  # by schedule: the job that starts now
        self._vacancies = {name: use.vacancies(usage.now) for name, use in usage.queues.items()}
        self._starts: dict[str, tuple[TaskLimit, int]] = {}  # by limit key: jobs of it that start now
        self._left: Counter[str] = Counter()

    def consider(self, job: Candidate) -> None:
        rival = (
            None
            if job.overlap is None
            else self._usage.rivals.get(job.id) or self._started.get(job.schedule_id)
        )
        if rival is not None:
            self._overlap(job, rival)
        elif job.limit_key is None:
            self._start_if_room(job)
        else:
            self._limited(job, job.limit_key)

    def _overlap(self, job: Candidate, rival: UUID) -> None:
        if job.due_at > self._now or job.schedule_id is None:
            return
        if job.overlap == Overlap.CANCEL_PREVIOUS:
            self.decision.cancel.add(rival)
        if job.attempt > 0:
            # A retry keeps its place: only a job from before the schedule was edited can be in its way
            return
        if job.overlap == Overlap.SKIP:
            self.decision.skip[job.id] = rival
        else:
            self.decision.wait[job.id] = schedule_permit(job.schedule_id)

    def _limited(self, job: Candidate, key: str) -> None:
        limit, use = self._usage.limits.get(job.target, UNLIMITED), self._keys.get(key, KeyUse())
        if limit.max_running is not None and use.permits >= limit.max_running:
            self._wait(job, key)
        elif limit.rate is not None and limit.rate.allowed(use.spent_until, self._now) == 0:
            self._ask_later(job, key, limit, use)
        elif limit.rate is not None and job.due_at > self._now:
            return  # a start that the rate allows now must happen now
        elif self._start_if_room(job):
            spent = use.spent_until if limit.rate is None else limit.rate.spend(use.spent_until, self._now, 1)
            self._keys[key] = use._replace(permits=use.permits + 1, spent_until=spent, served_at=self._now)
            self._starts[key] = limit, self._starts.get(key, (limit, 0))[1] + 1
            if limit.rate is not None:
                self.decision.keys[key] = self._keys[key]
        else:
            self._left[key] += 1
            if self._left[key] > READY_PER_KEY:
                if self.decision.left[-1:] == [job.id]:
                    self.decision.left.pop()
                self._wait(job, key)

    def _wait(self, job: Candidate, key: str) -> None:
        if job.due_at <= self._now:
            self.decision.wait[job.id] = key

    def _ask_later(self, job: Candidate, key: str, limit: TaskLimit, use: KeyUse) -> None:
        """One job of the key asks again when the rate allows the next start; the others wait for it."""
        assert limit.rate is not None
        if job.due_at > self._now:
            return
        if use.asks_at > self._now:
            self._wait(job, key)
            return
        asks_at = max(
            limit.rate.free_at(use.spent_until), self._now + min(MIN_ASK_INTERVAL, limit.rate.period)
        )
        self.decision.ask_at[job.id] = asks_at
        self._keys[key] = self.decision.keys[key] = use._replace(asks_at=asks_at)

    def _start_if_room(self, job: Candidate) -> bool:
        decision, vacancies = self.decision, self._vacancies.get(job.queue)
        full = len(decision.start) >= self._room or (job.limit_key is not None and self._permits <= 0)
        if full or (vacancies is not None and vacancies <= 0):
            if full and job.due_at <= self._now:
                decision.left.append(job.id)
            return False
        decision.start.append(job.id)
        self._permits -= job.limit_key is not None
        if job.schedule_id is not None:  # also one from before the schedule ran one job at a time
            self._started[job.schedule_id] = job.id
        if vacancies is not None:
            self._use_queue(job.queue, vacancies)
        return True

    def _use_queue(self, name: str, vacancies: int) -> None:
        self._vacancies[name] = vacancies - 1
        rate = self._usage.queues[name].queue.rate
        if rate is not None:
            spent = self.decision.queues.get(name, self._usage.queues[name].spent_until)
            self.decision.queues[name] = rate.spend(spent, self._now, 1)

    def finish(self) -> None:
        """Jobs that start leave places in the claim index: the next of their key take them. Where others were
        left, the order of turns is kept for the next claim."""
        if self.decision.left:
            self.decision.keys.update((key, self._keys[key]) for key in self._starts)
        for key, (limit, starts) in self._starts.items():
            use, free = self._keys[key], starts
            if limit.rate is not None:
                free = max(1, limit.rate.allowed(use.spent_until, self._now))
            if limit.max_running is not None:
                free = min(free, limit.max_running - use.permits)
            if free > 0:
                self.decision.promote[key] = min(free, READY_PER_KEY)
