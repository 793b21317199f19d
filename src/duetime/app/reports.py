"""Reports of external workers: completion, failure and heartbeats of the attempts they run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from duetime.clock import Clock
from duetime.engine.run.perform import decide, effective
from duetime.errors import Fenced, JobFinished
from duetime.invoker import Policies
from duetime.model.codec import encode_payload
from duetime.model.events import AttemptsSettled
from duetime.model.hint import JobHint
from duetime.model.instant import SECOND
from duetime.model.job import Claimed, Ending, Job, Outcome, State
from duetime.observer import Observer
from duetime.store import AttemptUpdate, Store

MAX_ERROR_LENGTH = 8_000
REPORT_TIMEOUT = 3_600 * SECOND  # for jobs without their own timeout


@dataclass(frozen=True, slots=True)
class Completed:
    attempt: int
    result: Any = None


@dataclass(frozen=True, slots=True)
class Failed:
    attempt: int
    error: str
    again: bool = True  # worth another attempt


@dataclass(frozen=True, slots=True)
class Alive:
    """Puts off the deadline of the report by the job's timeout, counted from now."""

    attempt: int
    progress: dict[str, Any] | None = None
    checkpoint: Any = None


Report = Completed | Failed | Alive


async def write(
    store: Store, clock: Clock, job: Job, report: Report, tell: Observer, policies: Policies
) -> None:
    """`policies` are those of the target, for policies that the job does not set."""
    if job.state.final:
        raise JobFinished(f"job {job.id} is already {job.state}: it takes no more reports")
    if job.state is not State.RUNNING or job.attempt != report.attempt:
        raise Fenced(
            f"attempt {report.attempt} of job {job.id} is not running: "
            "another attempt has taken over, stop working on it"
        )
    match report:
        case Completed():
            outcome = Outcome(Ending.SUCCEEDED, encode_payload(report.result, "result"))
            written = await _settle(store, clock, job, outcome, tell, policies)
        case Failed():
            outcome = Outcome(Ending.FAILED, error=report.error[:MAX_ERROR_LENGTH], hopeless=not report.again)
            written = await _settle(store, clock, job, outcome, tell, policies)
        case _:
            written = await _keep_alive(store, clock, job, report, policies)
    if not written:
        raise Fenced(f"attempt {report.attempt} of job {job.id} has ended in between: stop working on it")


async def _settle(
    store: Store, clock: Clock, job: Job, outcome: Outcome, tell: Observer, policies: Policies
) -> bool:
    settlement = decide(_claimed(job), outcome, policies, job.started_at, clock)
    if (await store.settle([settlement])).refused:
        return False
    tell(AttemptsSettled([settlement], [_claimed(job)]))
    if settlement.state is State.PENDING:
        await store.hint([JobHint(job.queue, job.priority, settlement.due_at, job.tenant)])
    return True


async def _keep_alive(store: Store, clock: Clock, job: Job, report: Alive, policies: Policies) -> bool:
    checkpoint = None if report.checkpoint is None else encode_payload(report.checkpoint, "checkpoint")
    progress = None if report.progress is None else encode_payload(report.progress, "progress")
    within = effective(_claimed(job), policies).timeout or REPORT_TIMEOUT
    update = AttemptUpdate(job.id, report.attempt, checkpoint, progress, deadline=clock.now() + within)
    return not await store.save_progress([update])


def _claimed(job: Job) -> Claimed:
    return Claimed(
        job.id, job.attempt, job.target, job.payload, job.due_at, job.queue, job.priority, job.fire_time,
        job.failures, job.losses, job.cancel_requested, job.schedule_id, job.schedule, job.overlap,
        job.policies, job.target_spec, job.checkpoint, job.tenant, True, job.limit_key,
    )  # fmt: skip
