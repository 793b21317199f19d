"""Jobs: submit, read, change, wait."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from duetime.clock import monotonic_micros
from duetime.engine.submit.build import NewJob
from duetime.engine.submit.validate import check_priority, check_state
from duetime.errors import InvalidInput, JobFailed, JobFinished, ServiceError, ServiceUnreachable, WaitTimeout
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.instant import SECOND, Micros
from duetime.model.job import State
from duetime.model.retry import Retry
from duetime.model.views import (
    DeadGroups,
    JobSummary,
    JobView,
    OutputView,
    Page,
    Submitted,
    SubmittedBatch,
    WhyView,
)
from duetime.remote.calls.fields import (
    NOT_GIVEN,
    JobId,
    duration_text,
    given,
    instant,
    job_body,
    job_id_of,
    label_text,
    listed,
    payload_of,
    target_of,
)
from duetime.remote.request import DONE_BEFORE, Call, Pause, read, request

Lines = Sequence[str | Mapping[str, str]]

# wait_for: the service holds the request until the job is final, but not longer than proxies usually allow.
MAX_HOLD, MIN_HOLD = 25 * SECOND, SECOND
FIRST_POLL_INTERVAL, MAX_POLL_INTERVAL = 0.05, 2.0  # seconds, if the service does not hold requests
CUT_OFF = (408, 502, 504)  # the answers of a proxy that does not wait as long
NEVER = 2**63 - 1


def submit(
    target: str | Mapping[str, Any],
    payload: Any = NOT_GIVEN,
    *,
    at: datetime | None = None,
    delay: Duration | None = None,
    queue: str | None = None,
    priority: int | None = None,
    timeout: Duration | None = None,
    retry: Retry | None = None,
    delivery: str | None = None,
    expires: Duration | datetime | None = None,
    jitter: Duration | None = None,
    unique_key: str | None = None,
    on_conflict: str | None = None,
    owner: str | None = None,
    labels: Mapping[str, str] | None = None,
    idempotency_key: str | None = None,
) -> Call[Submitted]:
    """Submit a job. It is durable when this returns. `target`: the name of a task, or an HTTP target such as
    {"url": "https://..."}."""
    body = job_body(
        target=target_of(target),
        payload=payload,
        at=at,
        delay=delay,
        queue=queue,
        priority=priority,
        timeout=timeout,
        retry=retry,
        delivery=delivery,
        expires=expires,
        jitter=jitter,
        unique_key=unique_key,
        on_conflict=on_conflict,
        owner=owner,
        labels=labels,
    )
    headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    return read(Submitted, (yield request("POST", "/jobs", body, headers=headers)))


def submit_many(jobs: Iterable[NewJob], *, idempotency_key: str | None = None) -> Call[SubmittedBatch]:
    """Submit all jobs or none; at most 10,000."""
    bodies = [_body(number, new) for number, new in enumerate(jobs)]
    headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    return read(SubmittedBatch, (yield request("POST", "/jobs/batch", {"jobs": bodies}, headers=headers)))


def get_job(job_id: JobId) -> Call[JobView]:
    """One job with its attempts."""
    return read(JobView, (yield request("GET", f"/jobs/{job_id_of(job_id)}")))


def jobs(
    *,
    state: State | str | None = None,
    queue: str | None = None,
    owner: str | None = None,
    schedule: str | None = None,
    worker: str | None = None,
    label: tuple[str, str] | None = None,
    target: str | None = None,
    error: str | None = None,
    error_group: str | None = None,
    payload: tuple[str, str] | None = None,
    due_after: datetime | None = None,
    due_before: datetime | None = None,
    id: str | None = None,
    limit: int = 100,
) -> Call[list[JobSummary]]:
    """The newest jobs that match, live and finished. `id`: the first digits of the id, or its last 8."""
    filters = {
        "state": None if state is None else check_state(state),
        "queue": queue,
        "owner": owner,
        "schedule": schedule,
        "worker": worker,
        "target": target,
        "error": error,
        "error_group": error_group,
        "payload": label_text(payload),
        "label": label_text(label),
        "due_after": instant(due_after, "due_after"),
        "due_before": instant(due_before, "due_before"),
        "id": id,
    }
    return (yield from listed(Page[JobSummary], "/jobs", limit, filters))


def cancel_job(job_id: JobId, reason: str | None = None) -> Call[JobView]:
    """Cancel a pending job, or ask the worker to stop a running one. Raises JobFinished if it is too late."""
    wanted = job_id_of(job_id)
    reply = yield request("DELETE", f"/jobs/{wanted}", query={"reason": reason}, done=(JobFinished.code,))
    if reply is not DONE_BEFORE:
        return read(JobView, reply)
    job = yield from get_job(wanted)
    if job.state is not State.CANCELLED:
        raise JobFinished(f"job {wanted} is {job.state} already")
    return job


def reschedule_job(
    job_id: JobId, *, at: datetime | None = None, delay: Duration | None = None, priority: int | None = None
) -> Call[JobView]:
    """Change the due time or the priority of a pending job."""
    body = given(
        at=instant(at, "at"),
        delay=duration_text(delay, "delay"),
        priority=None if priority is None else check_priority(priority),
    )
    return read(JobView, (yield request("PATCH", f"/jobs/{job_id_of(job_id)}", body)))


def run_job(job_id: JobId) -> Call[JobView]:
    """Make a pending job due now."""
    return read(JobView, (yield request("POST", f"/jobs/{job_id_of(job_id)}/run")))


def retry_job(job_id: JobId, payload: Any = None) -> Call[JobView]:
    """Retry a dead letter or a skipped job as a new job, optionally with another payload."""
    body = None if payload is None else {"payload": payload_of(payload)}
    return read(JobView, (yield request("POST", f"/jobs/{job_id_of(job_id)}/retry", body)))


def discard_job(job_id: JobId) -> Call[None]:
    """Remove a dead letter from the list; its record stays."""
    yield request("POST", f"/jobs/{job_id_of(job_id)}/discard", done=(JobFinished.code,))


def wait_for(
    job_id: JobId, timeout: Duration | None = None, *, raise_on_failure: bool = False
) -> Call[JobView]:
    """Wait until the job is final. Raises WaitTimeout after `timeout`; the job continues."""
    deadline = None if timeout is None else monotonic_micros() + duration.parse(timeout, "timeout")
    look, hold = FIRST_POLL_INTERVAL, MAX_HOLD
    while True:
        began, asked = monotonic_micros(), min(hold, _left(deadline))
        try:
            job = yield from (_held(job_id, asked) if asked > 0 else get_job(job_id))
        except ServiceError as problem:
            if not _cut_off(problem) or not hold:
                raise
            hold = 0 if hold < MIN_HOLD else hold // 2  # a proxy may have a shorter timeout
            job = yield from get_job(job_id)
        if job.state.final:
            break
        if _left(deadline) <= 0:
            raise WaitTimeout(f"job {job_id} is still {job.state} after {timeout}")
        if asked <= 0 or monotonic_micros() - began < asked // 2:  # the service did not hold the request
            yield Pause(min(look, _left(deadline) / SECOND))
            look = min(look * 1.5, MAX_POLL_INTERVAL)
    if raise_on_failure and job.state is not State.SUCCEEDED:
        reason = (job.error or "no reason given").strip().splitlines()[-1]
        raise JobFailed(f"job {job.id} is {job.state}: {reason}", job.id, job.state, job.error)
    return job


def job_output(job_id: JobId, *, attempt: int | None = None, after: int = 0) -> Call[OutputView]:
    """What an attempt of a job has logged and printed: the latest attempt unless another one is named; lines
    after this number only."""
    query = {"attempt": attempt, "after": after or None}
    return read(OutputView, (yield request("GET", f"/jobs/{job_id_of(job_id)}/output", query=query)))


def why_job(job_id: JobId) -> Call[WhyView]:
    """One sentence that explains the present state of a job."""
    return read(WhyView, (yield request("GET", f"/jobs/{job_id_of(job_id)}/why")))


def dead_letters(
    *,
    target: str | None = None,
    error: str | None = None,
    error_group: str | None = None,
    limit: int = 100,
) -> Call[list[JobSummary]]:
    """The newest dead letters that have not been retried or discarded."""
    filters = {"state": State.DEAD, "target": target, "error": error, "error_group": error_group}
    return (yield from listed(Page[JobSummary], "/jobs", limit, filters, lambda job: job.disposition is None))


def dead_groups() -> Call[DeadGroups]:
    """Dead letters, grouped by cause."""
    return read(DeadGroups, (yield request("GET", "/dead")))


# -- reports of external workers ---------------------------------------------------------------------------
def complete(job_id: JobId, token: str, result: Any = None, *, output: Lines = ()) -> Call[JobView]:
    """Report success. `token` is the Duetime-Report-Token header of the call. `output` is what the attempt
    logged since its last report: texts, or `{"text", "stream", "level"}`."""
    reported = yield from _report(job_id, "complete", {"token": token, "result": result}, output)
    return (yield from _settled(job_id, State.SUCCEEDED)) if reported is None else reported


def fail(job_id: JobId, token: str, error: str, *, retry: bool = True, output: Lines = ()) -> Call[JobView]:
    """Report a failure; with `retry`, another attempt may succeed. `output` as in `complete`."""
    reported = yield from _report(job_id, "fail", {"token": token, "error": error, "retry": retry}, output)
    return (yield from get_job(job_id)) if reported is None else reported


def heartbeat(
    job_id: JobId,
    token: str,
    *,
    progress: Mapping[str, Any] | None = None,
    checkpoint: Any = None,
    output: Lines = (),
) -> Call[JobView]:
    """Report that the work continues: extends the deadline by the timeout of the job. `output` as in
    `complete`."""
    body = given(token=token, progress=None if progress is None else dict(progress), checkpoint=checkpoint)
    body |= _output(output)
    return read(JobView, (yield request("POST", f"/jobs/{job_id_of(job_id)}/heartbeat", body)))


def _report(job_id: JobId, verb: str, body: dict[str, Any], output: Lines) -> Call[JobView | None]:
    """None: the reply was lost and the attempt has ended, most likely by this report."""
    reply = yield request(
        "POST",
        f"/jobs/{job_id_of(job_id)}/{verb}",
        body | _output(output),
        done=(JobFinished.code, "fenced"),
    )
    return None if reply is DONE_BEFORE else read(JobView, reply)


def _output(lines: Lines) -> dict[str, Any]:
    return (
        {"output": [{"text": line} if isinstance(line, str) else dict(line) for line in lines]}
        if lines
        else {}
    )


def _settled(job_id: JobId, state: State) -> Call[JobView]:
    job = yield from get_job(job_id)
    if job.state is not state:
        raise JobFinished(f"job {job_id} is {job.state}: the report is too late")
    return job


def _body(number: int, new: NewJob) -> dict[str, Any]:
    if not isinstance(new, NewJob):
        raise InvalidInput(
            f"jobs[{number}]",
            f'{new!r} is not a NewJob: write dt.NewJob("invoice.send", {{"customer": "c1"}})',
        )
    return job_body(
        **{**new._asdict(), "task": None, "target": target_of(new.task), "payload": _payload(new)}
    )


def _payload(new: NewJob) -> Any:
    return NOT_GIVEN if new.payload is None else new.payload


def _held(job_id: JobId, wait: Micros) -> Call[JobView]:
    """The job as soon as it is final, or after `wait`."""
    query = {"wait": duration.show(wait)}
    held = request("GET", f"/jobs/{job_id_of(job_id)}", query=query, repeatable=False, held=wait / SECOND)
    return read(JobView, (yield held))


def _cut_off(problem: ServiceError) -> bool:
    return problem.sent if isinstance(problem, ServiceUnreachable) else problem.status in CUT_OFF


def _left(deadline: Micros | None) -> Micros:
    return NEVER if deadline is None else deadline - monotonic_micros()
