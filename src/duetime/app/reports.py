"""Reports on attempts that run outside the nodes: on external jobs, and by remote workers on their jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from duetime.clock import Clock
from duetime.engine.group_commit import GroupCommit
from duetime.engine.run.output import append_output
from duetime.engine.run.perform import decide, effective
from duetime.errors import Fenced, JobFinished
from duetime.invoker import REPORT_TIMEOUT, Policies
from duetime.model import duration
from duetime.model.codec import encode_payload
from duetime.model.events import AttemptsSettled
from duetime.model.hint import JobHint
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Claimed, Ending, Job, Outcome, State
from duetime.model.limit import QueueFilter
from duetime.model.output import Stream
from duetime.model.settle import Settlement
from duetime.observer import Observer
from duetime.store import AttemptUpdate, Store

MAX_ERROR_LENGTH = 8_000
LIMITS_TTL = 5 * SECOND
RESTRICTED = QueueFilter(restricted=True)  # their lanes are not needed
Decided = tuple[Settlement, Claimed]
OutputText = tuple[Stream, int, str]  # the level is a number, as in `logging`


@dataclass(frozen=True, slots=True)
class Completed:
    attempt: int
    result: Any = None


@dataclass(frozen=True, slots=True)
class Failed:
    attempt: int
    error: str
    again: bool = True  # worth another attempt
    delay: Micros | None = None  # until that attempt; None: as the retry policy says


@dataclass(frozen=True, slots=True)
class Snoozed:
    attempt: int
    delay: Micros
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Released:
    attempt: int
    started: bool = True  # False: the worker has not begun with it


@dataclass(frozen=True, slots=True)
class Alive:
    """Puts off the deadline of the report by the job's timeout, counted from now."""

    attempt: int
    progress: dict[str, Any] | None = None
    checkpoint: Any = None


Ended = Completed | Failed | Snoozed | Released
Report = Ended | Alive


@dataclass(frozen=True, slots=True)
class ReportedOutput:
    """What an attempt logged since its last report."""

    lines: Sequence[OutputText]
    keep: Micros  # for so long; 0: not at all


def outcome_of(report: Ended) -> Outcome:
    match report:
        case Completed():
            return Outcome(Ending.SUCCEEDED, encode_payload(report.result, "result"))
        case Failed():
            error = report.error[:MAX_ERROR_LENGTH]
            return Outcome(Ending.FAILED, error=error, delay=report.delay, hopeless=not report.again)
        case Snoozed():
            return Outcome(Ending.SNOOZED, error=report.reason, delay=report.delay)
        case Released():
            return Outcome(Ending.RELEASED, error="released by its worker" if report.started else None)


def update_of(job_id: UUID, report: Alive, deadline: Micros | None = None) -> AttemptUpdate:
    checkpoint = None if report.checkpoint is None else encode_payload(report.checkpoint, "checkpoint")
    progress = None if report.progress is None else encode_payload(report.progress, "progress")
    return AttemptUpdate(job_id, report.attempt, checkpoint, progress, deadline=deadline)


class ReportWriter:
    """Writes what was decided about reported attempts. Concurrent reports share one write."""

    def __init__(self, store: Store, clock: Clock, tell: Observer) -> None:
        self._store = store
        self._clock = clock
        self._tell = tell
        self._group: GroupCommit[Decided, bool] = GroupCommit(self._write_all)
        self._limited: frozenset[str] = (
            frozenset()
        )  # queues where the end of a job may let the next one start
        self._limits_read_at: Micros | None = None

    async def write(self, decided: Sequence[Decided]) -> list[bool]:
        """For each of them whether it was written: the attempt was still the one that runs."""
        return await self._group.write(decided) if decided else []

    async def report(
        self, job: Job, report: Report, policies: Policies, output: ReportedOutput | None = None
    ) -> None:
        """One report on an external job. `policies` are those of the target, for policies that the job does
        not set."""
        if job.state.final:
            raise JobFinished(f"job {job.id} is already {job.state}: it takes no more reports")
        if job.state is not State.RUNNING or job.attempt != report.attempt:
            raise Fenced(
                f"attempt {report.attempt} of job {job.id} is not running: "
                "another attempt has taken over, stop working on it"
            )
        claimed = claimed_of(job)
        if output is not None and output.lines and output.keep:
            # First: a job that is final has all its output.
            await append_output(self._store, claimed, output.lines, output.keep, self._clock.now)
        if isinstance(report, Alive):
            within = effective(claimed, policies).timeout or duration.parse(REPORT_TIMEOUT, "timeout")
            # A consumer may be quicker than the node that hands the job over. The deadline begins with that.
            deadline = self._clock.now() + within if job.node is None else None
            update = update_of(job.id, report, deadline)
            written = not await self._store.save_progress([update])
        else:
            settlement = decide(claimed, outcome_of(report), policies, job.started_at, self._clock)
            [written] = await self.write([(settlement, claimed)])
        if not written:
            raise Fenced(f"attempt {report.attempt} of job {job.id} has ended in between: stop working on it")

    async def _write_all(self, decided: Sequence[Decided]) -> list[bool]:
        """The store names refusals by job: reports on two attempts of one job go one after the other."""
        written: dict[int, bool] = {}
        left = list(enumerate(decided))
        while left:
            first = {pair[0].id: number for number, pair in reversed(left)}
            batch = [(number, pair) for number, pair in left if first[pair[0].id] == number]
            refused = set((await self._store.settle([pair[0] for _, pair in batch])).refused)
            written |= {number: pair[0].id not in refused for number, pair in batch}
            left = [(number, pair) for number, pair in left if number not in written]
        await self._announce([pair for number, pair in enumerate(decided) if written[number]])
        return [written[number] for number in range(len(decided))]

    async def _announce(self, written: list[Decided]) -> None:
        if not written:
            return
        self._tell(AttemptsSettled([one for one, _ in written], [job for _, job in written]))
        await self._read_limits()
        hints = {
            JobHint(job.queue, job.priority, one.due_at if one.state is State.PENDING else 0, job.tenant)
            for one, job in written
            if one.state is State.PENDING or job.queue in self._limited
        }
        if hints:
            await self._store.hint(sorted(hints))

    async def _read_limits(self) -> None:
        now = self._clock.monotonic()
        if self._limits_read_at is None or now - self._limits_read_at > LIMITS_TTL:
            self._limits_read_at = now
            queues = await self._store.queues(wanted=RESTRICTED)
            self._limited = frozenset(
                queue.name for queue in queues if queue.max_running is not None or queue.rate is not None
            )


def claimed_of(job: Job) -> Claimed:
    return Claimed(
        job.id, job.attempt, job.target, job.payload, job.due_at, job.queue, job.priority, job.fire_time,
        job.failures, job.losses, job.cancel_requested, job.schedule_id, job.schedule, job.overlap,
        job.policies, job.target_spec, job.checkpoint, job.tenant, True, job.limit_key,
    )  # fmt: skip
