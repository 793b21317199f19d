"""The worker protocol, for a worker that has no access to the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from duetime.errors import WorkerNotFound
from duetime.model import duration
from duetime.model.duration import Duration
from duetime.model.instant import SECOND
from duetime.model.views import (
    ClaimedJob,
    ClaimedJobs,
    HeartbeatReply,
    RefusedReport,
    ReportReply,
    StopNotice,
    WorkerView,
)
from duetime.remote.calls.fields import duration_text, given
from duetime.remote.request import Call, read, request

Items = Sequence[Mapping[str, Any]]


def join_worker(
    name: str,
    tasks: Sequence[str | Mapping[str, Any]],
    *,
    queues: Sequence[str] = (),
    concurrency: int = 1,
    lease: Duration | None = None,
) -> Call[WorkerView]:
    """Join as a remote worker of these tasks: names, or objects with `name`, `timeout` and `retry`."""
    body = given(
        name=name,
        tasks=[{"name": task} if isinstance(task, str) else dict(task) for task in tasks],
        queues=list(queues) or None,
        concurrency=concurrency,
        lease=duration_text(lease, "lease"),
    )
    # Not repeated: a second request would make a second worker.
    return read(WorkerView, (yield request("POST", "/workers", body, repeatable=False)))


def leave_worker(worker: int) -> Call[None]:
    """Leave; jobs that are not reported are released."""
    yield request("DELETE", f"/workers/{worker}", done=(WorkerNotFound.code,))


def claim_jobs(worker: int, max: int = 1, wait: Duration = "0s") -> Call[list[ClaimedJob]]:
    """Claim due jobs. If there are none, wait for some, up to 60s."""
    body = {"max": max, "wait": duration_text(wait, "wait")}
    held = duration.parse(wait, "wait") / SECOND
    # Not repeated: the jobs of a lost answer come back when a heartbeat does not name them.
    claimed = yield request("POST", f"/workers/{worker}/claim", body, repeatable=False, held=held)
    return read(ClaimedJobs, claimed).jobs


def heartbeat_worker(worker: int, jobs: Items) -> Call[list[StopNotice]]:
    """Extend the lease. `jobs` names all jobs whose report has not been answered, as `{"id", "attempt"}` with
    `checkpoint` and `progress` if there are any. Returns those to stop."""
    body = {"jobs": [*map(dict, jobs)]}
    return read(HeartbeatReply, (yield request("POST", f"/workers/{worker}/heartbeat", body))).stop


def add_output(worker: int, jobs: Items) -> Call[list[RefusedReport]]:
    """Keep what jobs log and print, as `{"id", "attempt", "lines": [{"text", "stream", "level"}]}`. Returns
    those that are refused."""
    return (yield from _report("output", worker, jobs))


def complete_jobs(worker: int, jobs: Items) -> Call[list[RefusedReport]]:
    """Report success of jobs, as `{"id", "attempt", "result"}`. Returns those that are refused."""
    return (yield from _report("complete", worker, jobs))


def fail_jobs(worker: int, jobs: Items) -> Call[list[RefusedReport]]:
    """Report failures, as `{"id", "attempt", "error": {"message"}}`, with `retry` or `after` if it is known
    what should follow."""
    return (yield from _report("fail", worker, jobs))


def snooze_jobs(worker: int, jobs: Items) -> Call[list[RefusedReport]]:
    """Run jobs again later, as `{"id", "attempt", "after"}`."""
    return (yield from _report("snooze", worker, jobs))


def release_jobs(worker: int, jobs: Items) -> Call[list[RefusedReport]]:
    """Give jobs back, as `{"id", "attempt", "started"}`."""
    return (yield from _report("release", worker, jobs))


def _report(verb: str, worker: int, jobs: Items) -> Call[list[RefusedReport]]:
    body = {"jobs": [*map(dict, jobs)]}
    return read(ReportReply, (yield request("POST", f"/workers/{worker}/{verb}", body))).refused
