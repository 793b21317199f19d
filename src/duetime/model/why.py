"""Why a job is in its state: one sentence, from facts that were read from the store.

The codes are stable; programs may rely on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from duetime.model import duration
from duetime.model.codec import decode
from duetime.model.command import COMMAND
from duetime.model.describe.text import counted
from duetime.model.instant import SECOND, Micros
from duetime.model.job import Attempt, Delivery, Ending, Job, Overlap, State, error_line
from duetime.model.limit import show_rate
from duetime.model.publish import PUBLISH
from duetime.model.settle import POISON, was_not_here
from duetime.model.target import shown_name
from duetime.model.why_facts import JobFacts

JUST_NOW = 5 * SECOND
MAX_NAMED = 3


CODES = {
    "not_due": "a job that waits for its time",
    "retry_waits": "a job that waits for its next attempt",
    "snoozed": "a job whose task asked to be run later",
    "queue_paused": "a due job of a paused queue",
    "no_worker": "a due job while no worker is alive",
    "queue_unserved": "a due job whose queue no worker serves",
    "task_unknown": "a due job whose task no worker knows",
    "permission_missing": "a job that live workers may not run, because of their settings",
    "overlap_waits": "a due job of a schedule that runs one job at a time",
    "queue_full": "a due job of a queue that is at its limit of running jobs",
    "queue_rate": "a due job of a queue that is at its rate limit",
    "limit_full": "a due job that waits for the limit of its task",
    "limit_rate": "a due job that waits for the rate limit of its task",
    "workers_busy": "a due job while all workers are busy",
    "starting": "a job that just became due",
    "due": "a due job without a known reason to wait",
    "queued": "a job on its way to a worker",
    "claimed": "a job that its worker will start when it is due",
    "running": "a job that runs",
    "cancelling": "a running job that was asked to stop",
    "lease_overdue": "a running job whose node has missed its heartbeat",
    "node_dead": "a running job whose node died",
    "handed_over": "a job that runs outside and whose report is awaited",
    "report_overdue": "a job whose report did not come in time",
    "succeeded": "a job that succeeded",
    "dead": "a dead letter",
    "dead_retried": "a dead letter that was retried",
    "dead_discarded": "a dead letter that was discarded",
    "cancelled": "a job that was cancelled",
    "skipped": "a fire that was not run",
    "skipped_missed": "a fire that was not planned in time",
    "skipped_overlap": "a fire that was skipped because an earlier one still ran",
    "fires": "a schedule that fires",
    "paused": "a paused schedule",
    "no_planner": "a schedule while no planner is alive",
    "planner_late": "a schedule whose fire is overdue",
    "runs_spent": "a schedule that has fired max_runs times",
    "ended": "a schedule past its end_at",
    "over": "a schedule that has no more instants",
    "unreadable": "a schedule that this machine cannot read",
}


@dataclass(frozen=True, slots=True)
class Why:
    """`code` is one of CODES."""

    code: str
    why: str
    since: Micros | None = None
    remedy: str | None = None


def explain(facts: JobFacts) -> Why:
    match facts.job.state:
        case State.PENDING:
            return _due(facts) if facts.waits else _not_due(facts)
        case State.QUEUED:
            return Why("queued", "waits: it is on its way to a worker", facts.job.due_at)
        case State.RUNNING:
            return _handed_over(facts) if facts.job.node is None else _running(facts)
        case State.SUCCEEDED:
            return _succeeded(facts)
        case State.DEAD:
            return _dead(facts)
        case State.CANCELLED:
            return _cancelled(facts)
        case State.SKIPPED:
            return _skipped(facts)


def _not_due(facts: JobFacts) -> Why:
    job = facts.job
    last = facts.attempts[-1] if facts.attempts else None
    due = facts.at(job.due_at)
    if last is not None and was_not_here(last):
        return _not_here(facts, last, f"; it will be tried again at {due}")
    if last is None or not facts.retries:
        return Why("not_due", f"waits: it is due at {due}", job.created_at, "run it now to skip the wait")
    if last.ending is Ending.SNOOZED:
        return Why(
            "snoozed",
            f"waits: its task asked at {facts.at(last.finished_at)} to be run again at {due}",
            last.finished_at,
        )
    how = (
        "timed out"
        if last.ending is Ending.TIMED_OUT
        else "failed"
        if last.ending is Ending.FAILED
        else "was lost"
    )
    what = f"attempt {last.attempt} {how} at {facts.at(last.finished_at)}{_in_brackets(last.error)}"
    so_far = f", {counted(job.failures, 'failure')} so far" if job.failures > 1 else ""
    return Why(
        "retry_waits",
        f"waits: {what}{so_far}; it will be retried at {due}",
        last.finished_at,
        "run it now to skip the wait",
    )


def _due(facts: JobFacts) -> Why:
    """The first reason to wait, from the widest to the narrowest."""
    found = (
        _paused(facts)
        or _unserved(facts)
        or _overlap(facts)
        or _queue_full(facts)
        or _limit_full(facts)
        or _rate(facts)
        or _busy(facts)
    )
    if found is None and facts.attempts and was_not_here(facts.attempts[-1]):
        found = _not_here(facts, facts.attempts[-1], "")
    if found is not None:
        return found
    due = f"it has been due since {facts.at(facts.job.due_at)}"
    if facts.now - facts.job.due_at < JUST_NOW:
        return Why("starting", f"waits: {due} and is about to start", facts.job.due_at)
    remedy = "check the workers' logs if this continues"
    return Why("due", f"waits: {due}, for no known reason{_others(facts)}", facts.job.due_at, remedy)


def _paused(facts: JobFacts) -> Why | None:
    queue = facts.queue
    if queue is None or not queue.paused:
        return None
    state = "is paused" if queue.paused_at is None else f"has been paused since {facts.at(queue.paused_at)}"
    why = f"waits: queue {queue.name} {state}{_in_brackets(queue.pause_note)}"
    return Why("queue_paused", why, queue.paused_at, "resume the queue")


def _unserved(facts: JobFacts) -> Why | None:
    job, fleet = facts.job, facts.fleet
    if not fleet.living("worker"):
        return Why("no_worker", "waits: no worker is alive", None, "start a worker")
    if not fleet.serving_workers(job.queue):
        workers = counted(len(fleet.living("worker")), "live worker")
        why = f"waits: none of {workers} serves queue {job.queue}"
        return Why("queue_unserved", why, None, f"start a worker that serves queue {job.queue}")
    if not fleet.able(job):
        serving = counted(len(fleet.serving_workers(job.queue)), "live worker")
        missing, name = fleet.missing_permission(job), shown_name(job.target)
        if missing is not None:
            why = f"waits: none of {serving} of queue {job.queue} may run it, for want of {missing}"
            return Why("permission_missing", why, None, f"start a worker with {missing}")
        what = f"the target {name}" if name.startswith("@") else f"the task {name}"
        return Why(
            "task_unknown",
            f"waits: none of {serving} of queue {job.queue} knows {what}",
            None,
            _how_to_know(job.target),
        )
    return None


def _not_here(facts: JobFacts, last: Attempt, then: str) -> Why:
    """A node gave it back, because it may not run it."""
    tried = {one.node for one in facts.attempts if was_not_here(one)}
    others = [facts.fleet.call(node.id) for node in facts.fleet.able(facts.job) if node.id not in tried]
    may = f"{', '.join(others[:MAX_NAMED])} may be able to" if others else "no other live worker is known to"
    why = f"waits: {facts.fleet.call(last.node)} did not run it{_in_brackets(last.error)}; {may}{then}"
    return Why("permission_missing", why, last.finished_at, "give a worker what it lacks, then run it now")


def _how_to_know(target: str) -> str:
    match target.partition(":"):
        case command, "", "" if command == COMMAND:
            return "start a worker with --allow-commands yes"
        case publish, ":", destination if publish == PUBLISH:
            return f"start a worker that has the destination {destination} in its settings"
        case _:
            return "start a worker that knows it"


def _overlap(facts: JobFacts) -> Why | None:
    job, other = facts.job, facts.blocker
    if job.overlap is None or other is None:
        return None
    where = (
        f"has been running since {facts.at(other.claimed_at)}"
        if other.claimed_at is not None
        else "has started"
    )
    doing = where if other.state is State.RUNNING else f"will be retried at {facts.at(other.due_at)}"
    asked = (
        ", and was asked to stop" if job.overlap == Overlap.CANCEL_PREVIOUS and other.cancel_requested else ""
    )
    why = f"waits: schedule {job.schedule} runs one job at a time, and {other.id} {doing}{asked}"
    return Why("overlap_waits", why, other.claimed_at, f"cancel {other.id} to skip the wait")


def _queue_full(facts: JobFacts) -> Why | None:
    queue = facts.queue
    if queue is None or queue.max_running is None or facts.running_in_queue < queue.max_running:
        return None
    why = f"waits: queue {queue.name} is at its limit of {counted(queue.max_running, 'running job')}"
    return Why("queue_full", why, None, "raise the limit of the queue, or wait")


def _limit_full(facts: JobFacts) -> Why | None:
    job, bound = facts.job, facts.bound
    if bound is None or bound.max_running is None or facts.key_running < bound.max_running:
        return None
    named = ", ".join(str(other.id) for other in facts.key_jobs[:MAX_NAMED])
    who = (
        f": {named}{' and others' if facts.key_running > min(len(facts.key_jobs), MAX_NAMED) else ''}"
        if named
        else ""
    )
    why = (
        f"waits: the limit of {counted(bound.max_running, 'running job')} for {job.limit_key} is reached{who}"
    )
    return Why("limit_full", why, None, f"raise the limit of {job.target}, or wait")


def _rate(facts: JobFacts) -> Why | None:
    queue, bound, remedy = facts.queue, facts.bound, "raise the rate, or wait"
    if queue is not None and queue.rate is not None and facts.queue_free_at is not None:
        reached = f"queue {queue.name} is at its rate limit of {show_rate(queue.rate)}"
        free = f"the next may start at {facts.at(facts.queue_free_at)}"
        return Why("queue_rate", f"waits: {reached}; {free}", None, remedy)
    if bound is not None and bound.rate is not None and facts.key_asks_at is not None:
        reached = f"the rate limit of {show_rate(bound.rate)} for {facts.job.limit_key} is reached"
        free = f"the next may start at {facts.at(facts.key_asks_at)}"
        return Why("limit_rate", f"waits: {reached}; {free}", None, remedy)
    return None


def _busy(facts: JobFacts) -> Why | None:
    able = facts.fleet.able(facts.job)
    if not facts.fleet.busy(able):
        return None
    who = (
        "the one worker that can run it is"
        if len(able) == 1
        else f"all {len(able)} workers that can run it are"
    )
    remedy = "start another worker, or raise the concurrency"
    return Why("workers_busy", f"waits: {who} busy{_others(facts)}", facts.job.due_at, remedy)


def _others(facts: JobFacts) -> str:
    return f"; queue {facts.job.queue} has {facts.due_in_queue} due jobs" if facts.due_in_queue > 1 else ""


def _running(facts: JobFacts) -> Why:
    job = facts.job
    node, where = facts.fleet.find(job.node), facts.fleet.call(job.node)
    if node is None or node.dead:
        return Why(
            "node_dead",
            f"waits: {where} died while running it; it will be released soon",
            job.claimed_at,
            _reaper(facts),
        )
    if node.lease_until <= facts.now:
        why = f"runs on {where}, whose lease ended at {facts.at(node.lease_until)}"
        why = f"{why}: it will be released unless the node renews its lease"
        return Why("lease_overdue", why, node.lease_until, _reaper(facts))
    if job.due_at > facts.now:
        return Why("claimed", f"waits on {where}: it starts at {facts.at(job.due_at)}", job.claimed_at)
    since = "" if job.claimed_at is None else f" since {facts.at(max(job.claimed_at, job.due_at))}"
    so_far = f"attempt {job.attempt} on {where}{since}{_progress(job)}"
    if job.cancel_requested:
        return Why("cancelling", f"runs, and was asked to stop: {so_far}", job.claimed_at)
    return Why("running", f"runs: {so_far}", job.claimed_at)


def _handed_over(facts: JobFacts) -> Why:
    job = facts.job
    which = f"attempt {job.attempt} was handed over{_progress(job)}"
    if job.due_at <= facts.now:
        since = facts.at(job.due_at)
        why = f"waits: {which}, and its report has been overdue since {since}: it will time out soon"
        return Why("report_overdue", why, job.due_at, _reaper(facts))
    return Why(
        "handed_over",
        f"runs outside: {which}, and its report must come before {facts.at(job.due_at)}",
        job.claimed_at,
    )


def _reaper(facts: JobFacts) -> str | None:
    """Any live node releases lost jobs; without one, they stay."""
    alive = any(not node.dead and node.lease_until > facts.now for node in facts.fleet.nodes)
    return None if alive else "start a node: none is alive"


def _progress(job: Job) -> str:
    value: Any = None if job.progress is None else decode(job.progress)
    if not isinstance(value, dict) or "done" not in value:
        return ""
    total = f" of {value['total']:g}" if value.get("total") else ""
    return f", {value['done']:g}{total} done{_in_brackets(value.get('note'))}"


def _succeeded(facts: JobFacts) -> Why:
    job = facts.job
    took = (
        ""
        if job.started_at is None or job.finished_at is None
        else f" in {duration.show_millis(job.finished_at - job.started_at)}"
    )
    where = "" if job.node is None else f" on {facts.fleet.call(job.node)}"
    return Why(
        "succeeded", f"succeeded at {_end(facts)}: attempt {job.attempt}{where}{took}", job.finished_at
    )


def _dead(facts: JobFacts) -> Why:
    job = facts.job
    why = f"gave up at {_end(facts)}: {_why_dead(job)}{_in_brackets(job.error)}"
    match job.disposition:
        case "retried":
            return Why("dead_retried", f"{why}; it was retried as another job", job.finished_at)
        case "discarded":
            return Why("dead_discarded", f"{why}; it was discarded", job.finished_at)
        case _:
            return Why("dead", why, job.finished_at, "fix the cause and retry it, or discard it")


def _why_dead(job: Job) -> str:
    own = {} if job.policies is None else decode(job.policies)
    if (job.error or "").startswith(POISON):
        return f"lost {job.losses} times with its worker or the store"
    if own.get("delivery") == Delivery.AT_MOST_ONCE:
        return f"attempt {job.attempt} did not succeed, and it is delivered at most once"
    note = (job.error or "").partition("\n")[0]
    refusal = f", {note}" if note.startswith("not tried again") and "\n" in (job.error or "") else ""
    return f"{counted(job.failures, 'failed attempt')}{refusal}"


def _cancelled(facts: JobFacts) -> Why:
    job = facts.job
    when = f" during attempt {job.attempt}" if job.attempt else " before it started"
    return Why("cancelled", f"was cancelled at {_end(facts)}{when}{_in_brackets(job.error)}", job.finished_at)


def _skipped(facts: JobFacts) -> Why:
    reason = facts.job.error or "no reason was recorded"
    kind = reason.partition(":")[0]
    code = f"skipped_{kind}" if kind in ("missed", "overlap") else "skipped"
    why = f"was skipped at {_end(facts)}: {reason}"
    if facts.job.disposition is not None:
        return Why(code, f"{why}; it was retried as another job", facts.job.finished_at)
    remedy = "retry it to run it after all"
    if facts.job.schedule:
        remedy += ", or backfill the schedule to run all that were skipped"
    return Why(code, why, facts.job.finished_at, remedy)


def _end(facts: JobFacts) -> str:
    return facts.at(facts.job.finished_at if facts.job.finished_at is not None else facts.now)


def _in_brackets(text: str | None) -> str:
    return f" ({error_line(text)})" if text else ""
