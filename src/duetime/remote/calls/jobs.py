"""Jobs: submit, read, change, wait for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from duetime.clock import monotonic_micros
from duetime.engine.checks import check_priority, check_state
from duetime.engine.drafts import NewJob
from duetime.errors import InvalidInput, JobFailed, JobFinished, ServiceError, ServiceUnreachable, WaitTimeout
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.instant import SECOND, Micros
from duetime.model.job import State
from duetime.model.retry import Retry
from duetime.remote.calls.fields import CONTENT, JobId, given, instant, job_body, job_id_of, label_of, lapse, target_of
from duetime.remote.calls.paging import Page, listed
from duetime.remote.reading import read
from duetime.remote.results import Batch, DeadGroups, Job, JobSummary, Submitted, Why
from duetime.remote.talk import DONE_BEFORE, Pause, Talk, ask

# A job that is waited for: the service keeps the request until the job is final, for so long that nothing in between gives it up.
LONGEST_HOLD, SHORTEST_HOLD = 25 * SECOND, SECOND
FIRST_LOOK, LONGEST_LOOK = 0.05, 2.0  # seconds between two looks where the service does not
CUT_OFF = (408, 502, 504)  # what is answered by one in between who will not wait
NEVER = 2**63 - 1


def submit(
    target: str | Mapping[str, Any], payload: Any = CONTENT, *, at: datetime | None = None, delay: Duration | None = None,
    queue: str | None = None, priority: int | None = None, timeout: Duration | None = None, retry: Retry | None = None,
    delivery: str | None = None, unique_key: str | None = None, on_conflict: str | None = None, owner: str | None = None,
    labels: Mapping[str, str] | None = None, idempotency_key: str | None = None,
) -> Talk[Submitted]:  # fmt: skip
    """Store one job; when this returns it is durable. `target` is a task's name, or an HTTP target such as {"url": "https://..."}."""
    body = job_body(
        target=target_of(target), payload=payload, at=at, delay=delay, queue=queue, priority=priority, timeout=timeout, retry=retry,
        delivery=delivery, unique_key=unique_key, on_conflict=on_conflict, owner=owner, labels=labels,
    )  # fmt: skip
    headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    return read(Submitted, (yield ask("POST", "/jobs", body, headers=headers)))


def submit_many(jobs: Iterable[NewJob], *, idempotency_key: str | None = None) -> Talk[Batch]:
    """Store all of them or none; at most 10,000."""
    bodies = [_body(number, new) for number, new in enumerate(jobs)]
    headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    return read(Batch, (yield ask("POST", "/jobs/batch", {"jobs": bodies}, headers=headers)))


def get_job(job_id: JobId) -> Talk[Job]:
    """One job with its attempts."""
    return read(Job, (yield ask("GET", f"/jobs/{job_id_of(job_id)}")))


def jobs(
    *, state: State | str | None = None, queue: str | None = None, owner: str | None = None, schedule: str | None = None,
    worker: str | None = None, label: tuple[str, str] | None = None, target: str | None = None, error: str | None = None,
    due_after: datetime | None = None, due_before: datetime | None = None, limit: int = 100,
) -> Talk[list[JobSummary]]:  # fmt: skip
    """The newest jobs that match, live and past."""
    filters = {
        "state": None if state is None else check_state(state), "queue": queue, "owner": owner, "schedule": schedule, "worker": worker,
        "target": target, "error": error,
        "label": label_of(label), "due_after": instant(due_after, "due_after"),
        "due_before": instant(due_before, "due_before"),
    }  # fmt: skip
    return (yield from listed(Page[JobSummary], "/jobs", limit, filters))


def cancel_job(job_id: JobId, reason: str | None = None) -> Talk[Job]:
    """End it before it starts, or ask its worker to stop it. Raises JobFinished when it is too late."""
    wanted = job_id_of(job_id)
    reply = yield ask("DELETE", f"/jobs/{wanted}", query={"reason": reason}, done=(JobFinished.code,))
    if reply is not DONE_BEFORE:
        return read(Job, reply)
    job = yield from get_job(wanted)
    if job.state is not State.CANCELLED:
        raise JobFinished(f"job {wanted} is {job.state} already")
    return job


def move_job(job_id: JobId, *, at: datetime | None = None, delay: Duration | None = None, priority: int | None = None) -> Talk[Job]:
    """Another due time or priority for a job that is pending."""
    body = given(at=instant(at, "at"), delay=lapse(delay, "delay"), priority=None if priority is None else check_priority(priority))
    return read(Job, (yield ask("PATCH", f"/jobs/{job_id_of(job_id)}", body)))


def run_job(job_id: JobId) -> Talk[Job]:
    """Have a pending job due now, whatever it waited for."""
    return read(Job, (yield ask("POST", f"/jobs/{job_id_of(job_id)}/run")))


def retry_job(job_id: JobId, payload: Any = None) -> Talk[Job]:
    """Run a dead letter again, as a new job linked to it; with another payload, if one is given."""
    return read(Job, (yield ask("POST", f"/jobs/{job_id_of(job_id)}/retry", given(payload=payload) or None)))


def discard_job(job_id: JobId) -> Talk[None]:
    """Take a dead letter off the list; its record stays."""
    yield ask("POST", f"/jobs/{job_id_of(job_id)}/discard", done=(JobFinished.code,))


def wait_for(job_id: JobId, timeout: Duration | None = None, *, raise_on_failure: bool = False) -> Talk[Job]:
    """The job once it is final. Raises WaitTimeout when that takes too long; the job goes on all the same."""
    deadline = None if timeout is None else monotonic_micros() + duration.parse(timeout, "timeout")
    look, hold = FIRST_LOOK, LONGEST_HOLD
    while True:
        began, asked = monotonic_micros(), min(hold, _left(deadline))
        try:
            job = yield from (_held(job_id, asked) if asked > 0 else get_job(job_id))
        except ServiceError as problem:
            if not _cut_off(problem) or not hold:
                raise
            hold = 0 if hold < SHORTEST_HOLD else hold // 2  # somebody in between may have less patience
            job = yield from get_job(job_id)
        if job.state.final:
            break
        if _left(deadline) <= 0:
            raise WaitTimeout(f"job {job_id} is still {job.state} after {timeout}")
        if asked <= 0 or monotonic_micros() - began < asked // 2:  # not held, for whatever reason
            yield Pause(min(look, _left(deadline) / SECOND))
            look = min(look * 1.5, LONGEST_LOOK)
    if raise_on_failure and job.state is not State.SUCCEEDED:
        reason = (job.error or "no reason given").strip().splitlines()[-1]
        raise JobFailed(f"job {job.id} is {job.state}: {reason}", job.id, job.state, job.error)
    return job


def why_job(job_id: JobId) -> Talk[Why]:
    """One sentence that explains its present state."""
    return read(Why, (yield ask("GET", f"/jobs/{job_id_of(job_id)}/why")))


def dead_letters(*, target: str | None = None, error: str | None = None, limit: int = 100) -> Talk[list[JobSummary]]:
    """The newest dead letters that nobody has retried or discarded yet."""
    filters = {"state": State.DEAD, "target": target, "error": error}
    return (yield from listed(Page[JobSummary], "/jobs", limit, filters, lambda job: job.disposition is None))


def dead_groups() -> Talk[DeadGroups]:
    """Dead letters, grouped by what they died of."""
    return read(DeadGroups, (yield ask("GET", "/dead")))


# -- reports of workers outside -------------------------------------------------------------------------------------------
def complete(job_id: JobId, token: str, result: Any = None) -> Talk[Job]:
    """The work is done. `token` is the Duetime-Report-Token the call came with."""
    reported = yield from _report(job_id, "complete", {"token": token, "result": result})
    return (yield from _settled(job_id, State.SUCCEEDED)) if reported is None else reported


def fail(job_id: JobId, token: str, error: str, *, retry: bool = True) -> Talk[Job]:
    """The work failed; `retry` tells whether another attempt could go better."""
    reported = yield from _report(job_id, "fail", {"token": token, "error": error, "retry": retry})
    return (yield from get_job(job_id)) if reported is None else reported


def heartbeat(job_id: JobId, token: str, *, progress: Mapping[str, Any] | None = None, checkpoint: Any = None) -> Talk[Job]:
    """The work goes on: puts off the deadline of the report by the job's timeout."""
    body = given(token=token, progress=None if progress is None else dict(progress), checkpoint=checkpoint)
    return read(Job, (yield ask("POST", f"/jobs/{job_id_of(job_id)}/heartbeat", body)))


def _report(job_id: JobId, verb: str, body: dict[str, Any]) -> Talk[Job | None]:
    """None: the answer was lost, and the job is not ours any more; most likely by the report itself."""
    reply = yield ask("POST", f"/jobs/{job_id_of(job_id)}/{verb}", body, done=(JobFinished.code, "fenced"))
    return None if reply is DONE_BEFORE else read(Job, reply)


def _settled(job_id: JobId, state: State) -> Talk[Job]:
    job = yield from get_job(job_id)
    if job.state is not state:
        raise JobFinished(f"job {job_id} is {job.state}: the report came too late")
    return job


def _body(number: int, new: NewJob) -> dict[str, Any]:
    if not isinstance(new, NewJob):
        raise InvalidInput(f"jobs[{number}]", f'{new!r} is no NewJob: write dt.NewJob("invoice.send", {{"customer": "c1"}})')
    return job_body(**{**new._asdict(), "task": None, "target": target_of(new.task), "payload": _payload(new)})


def _payload(new: NewJob) -> Any:
    return CONTENT if new.payload is None else new.payload


def _held(job_id: JobId, wait: Micros) -> Talk[Job]:
    """The job when it is final, or as it is after this time at the latest."""
    request = ask("GET", f"/jobs/{job_id_of(job_id)}", query={"wait": duration.show(wait)}, again=False, held=wait / SECOND)
    return read(Job, (yield request))


def _cut_off(problem: ServiceError) -> bool:
    return problem.sent if isinstance(problem, ServiceUnreachable) else problem.status in CUT_OFF


def _left(deadline: Micros | None) -> Micros:
    return NEVER if deadline is None else deadline - monotonic_micros()
