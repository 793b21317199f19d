"""Why a job is as it is: one sentence, from facts that were read of the store. The codes are stable; programs may rely on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from duetime.model import duration
from duetime.model.attempt import Attempt, Ending
from duetime.model.codec import decode
from duetime.model.instant import SECOND, Micros, to_datetime
from duetime.model.job import Delivery, Job, Overlap, State, error_line
from duetime.model.lease import Node
from duetime.model.limit import Bound, Queue, show_rate
from duetime.model.profile import Profile
from duetime.model.settle import POISON_LOSSES

HOUR, DAY = 3_600 * SECOND, 86_400 * SECOND
A_MOMENT = 5 * SECOND
MOST_NAMED = 3


CODES = {
    "not_due": "a job that waits for its time",
    "retry_waits": "a job that waits for its next attempt",
    "snoozed": "a job whose task asked to be run later",
    "queue_paused": "a due job of a paused queue",
    "no_worker": "a due job while no worker is alive",
    "queue_unserved": "a due job whose queue no worker serves",
    "task_unknown": "a due job whose task no worker knows",
    "overlap_waits": "a due job of a schedule that runs one at a time",
    "queue_full": "a due job of a queue that runs as many as it may",
    "queue_rate": "a due job of a queue that has started as many as it may",
    "gate_full": "a due job held up by the limit of its task",
    "gate_rate": "a due job held up by the rate of its task",
    "workers_busy": "a due job while all workers have enough to do",
    "starting": "a job that is due since a moment",
    "due": "a due job which nothing known holds up",
    "queued": "a job on its way to a worker",
    "claimed": "a job that its worker starts at its instant",
    "running": "a job that runs",
    "cancelling": "a running job that was asked to stop",
    "lease_overdue": "a running job whose node is not heard of",
    "node_dead": "a running job whose node died",
    "handed_over": "a job that runs elsewhere, and whose report is awaited",
    "report_overdue": "a job whose report did not come in time",
    "succeeded": "a job that succeeded",
    "dead": "a dead letter",
    "dead_retried": "a dead letter that was retried",
    "dead_discarded": "a dead letter that was discarded",
    "cancelled": "a job that was cancelled",
    "skipped": "a fire that was not run",
    "skipped_missed": "a fire that nobody planned in time",
    "skipped_overlap": "a fire that fell into the run of an earlier one",
    "fires": "a schedule that fires",
    "paused": "a paused schedule",
    "no_planner": "a schedule while no planner is alive",
    "planner_late": "a schedule whose fire is overdue",
    "runs_spent": "a schedule that has fired max_runs times",
    "ended": "a schedule past its end_at",
    "over": "a schedule that has no instant left",
    "unreadable": "a schedule that this machine cannot read",
}


@dataclass(frozen=True, slots=True)
class Why:
    """`code` is one of CODES."""

    code: str
    why: str
    since: Micros | None = None
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class Fleet:
    """Nodes, and what those that live have said of themselves."""

    now: Micros
    nodes: Sequence[Node] = ()
    profiles: Mapping[int, Profile] = field(default_factory=dict)

    def living(self, role: str) -> list[Node]:
        return [node for node in self.nodes if role in node.roles and not node.dead and node.lease_until > self.now]

    def servants(self, queue: str) -> list[Node]:
        return [node for node in self.living("worker") if (said := self.profiles.get(node.id)) is None or said.serves(queue)]

    def able(self, queue: str, target: str) -> list[Node]:
        """Of whom nothing is known may be able."""
        return [node for node in self.servants(queue) if (said := self.profiles.get(node.id)) is None or target in said.targets]

    def busy(self, nodes: Sequence[Node]) -> bool:
        return all(node.id in self.profiles and node.running >= self.profiles[node.id].concurrency for node in nodes)

    def bound(self, target: str) -> Bound | None:
        bounds = (said.bound(target) for node in self.living("worker") if (said := self.profiles.get(node.id)) is not None)
        return next((bound for bound in bounds if bound is not None), None)

    def find(self, number: int | None) -> Node | None:
        return next((node for node in self.nodes if node.id == number), None)

    def call(self, number: int | None) -> str:
        node = self.find(number)
        return "no node" if number is None else f"node {number}" if node is None else f"node {node.name} ({number})"


@dataclass(frozen=True, slots=True)
class Scene:
    """All that bears upon one job."""

    job: Job
    fleet: Fleet
    attempts: Sequence[Attempt] = ()
    queue: Queue | None = None
    running_in_queue: int = 0
    due_in_queue: int = 0  # of its own tenant
    blocker: Job | None = None  # the job of its schedule that has started and not finished
    bound: Bound | None = None  # of its gate
    at_gate: int = 0  # how many of its gate run
    gate_jobs: Sequence[Job] = ()  # those of its own tenant among them
    rate_until: Micros | None = None  # when a rate allows the next start

    @property
    def now(self) -> Micros:
        return self.fleet.now

    def at(self, moment: Micros) -> str:
        return at(moment, self.now)


def at(moment: Micros, now: Micros, local: Callable[[Micros], datetime] = to_datetime, zone: str = "UTC") -> str:
    """On the clocks of that zone: to the second what is near, with its day what is not today's."""
    when = local(moment)
    day = "" if when.date() == local(now).date() else f"{when:%Y-%m-%d} "
    return f"{day}{when:%H:%M:%S} {zone}" if abs(moment - now) < HOUR else f"{day}{when:%H:%M} {zone}"


def explain(scene: Scene) -> Why:
    match scene.job.state:
        case State.PENDING:
            return _not_due(scene) if scene.job.due_at > scene.now else _due(scene)
        case State.QUEUED:
            return Why("queued", "waits: it is on its way to a worker", scene.job.due_at)
        case State.RUNNING:
            return _handed_over(scene) if scene.job.node is None else _running(scene)
        case State.SUCCEEDED:
            return _succeeded(scene)
        case State.DEAD:
            return _dead(scene)
        case State.CANCELLED:
            return _cancelled(scene)
        case State.SKIPPED:
            return _skipped(scene)


# -- pending --------------------------------------------------------------------------------------------------------------
def _not_due(scene: Scene) -> Why:
    job = scene.job
    last = scene.attempts[-1] if scene.attempts else None
    due = scene.at(job.due_at)
    if last is None or last.ending is Ending.RELEASED:
        return Why("not_due", f"waits: it is due at {due}", job.created_at, "run it now if it shall not wait")
    if last.ending is Ending.SNOOZED:
        return Why("snoozed", f"waits: its task asked at {scene.at(last.finished_at)} to be run again at {due}", last.finished_at)
    how = "timed out" if last.ending is Ending.TIMED_OUT else "failed" if last.ending is Ending.FAILED else "was lost"
    what = f"attempt {last.attempt} {how} at {scene.at(last.finished_at)}{_in_brackets(last.error)}"
    so_far = f", {counted(job.failures, 'failure')} so far" if job.failures > 1 else ""
    return Why("retry_waits", f"waits: {what}{so_far}; it is tried again at {due}", last.finished_at, "run it now if it shall not wait")


def _due(scene: Scene) -> Why:
    """The first hindrance there is, from those that hold up most to those that hold up least."""
    found = _paused(scene) or _unserved(scene) or _overlap(scene) or _queue_full(scene) or _gate_full(scene) or _rate(scene) or _busy(scene)
    if found is not None:
        return found
    due = f"it is due since {scene.at(scene.job.due_at)}"
    if scene.now - scene.job.due_at < A_MOMENT:
        return Why("starting", f"waits: {due} and starts in a moment", scene.job.due_at)
    remedy = "look at the logs of the workers if this lasts"
    return Why("due", f"waits: {due}, and nothing known holds it up{_others(scene)}", scene.job.due_at, remedy)


def _paused(scene: Scene) -> Why | None:
    queue = scene.queue
    if queue is None or not queue.paused:
        return None
    since = "" if queue.paused_at is None else f" since {scene.at(queue.paused_at)}"
    why = f"waits: queue {queue.name} is paused{since}{_in_brackets(queue.pause_note)}"
    return Why("queue_paused", why, queue.paused_at, "resume the queue")


def _unserved(scene: Scene) -> Why | None:
    job, fleet = scene.job, scene.fleet
    if not fleet.living("worker"):
        return Why("no_worker", "waits: no worker is alive", None, "start a worker")
    if not fleet.servants(job.queue):
        workers = counted(len(fleet.living("worker")), "live worker")
        why = f"waits: none of {workers} serves queue {job.queue}"
        return Why("queue_unserved", why, None, f"start a worker that serves queue {job.queue}")
    if not fleet.able(job.queue, job.target):
        servants = counted(len(fleet.servants(job.queue)), "live worker")
        what = f"the target {job.target}" if job.target.startswith("@") else f"the task {job.target}"
        return Why("task_unknown", f"waits: none of {servants} of queue {job.queue} knows {what}", None, "start a worker that knows it")
    return None


def _overlap(scene: Scene) -> Why | None:
    job, other = scene.job, scene.blocker
    if job.overlap is None or other is None:
        return None
    where = f"runs since {scene.at(other.claimed_at)}" if other.claimed_at is not None else "has begun"
    doing = where if other.state is State.RUNNING else f"is tried again at {scene.at(other.due_at)}"
    asked = ", and was asked to stop" if job.overlap == Overlap.CANCEL_PREVIOUS and other.cancel_requested else ""
    why = f"waits: schedule {job.schedule} runs one job at a time, and {other.id} {doing}{asked}"
    return Why("overlap_waits", why, other.claimed_at, f"cancel {other.id} if it shall not wait")


def _queue_full(scene: Scene) -> Why | None:
    queue = scene.queue
    if queue is None or queue.most is None or scene.running_in_queue < queue.most:
        return None
    why = f"waits: queue {queue.name} runs at most {queue.most} at once, and so many run"
    return Why("queue_full", why, None, "raise the limit of the queue, or wait")


def _gate_full(scene: Scene) -> Why | None:
    job, bound = scene.job, scene.bound
    if bound is None or bound.most is None or scene.at_gate < bound.most:
        return None
    named = ", ".join(str(other.id) for other in scene.gate_jobs[:MOST_NAMED])
    who = f": {named}{' and others' if scene.at_gate > min(len(scene.gate_jobs), MOST_NAMED) else ''}" if named else ""
    why = f"waits: of {job.gate} at most {bound.most} run at once, and {scene.at_gate} do{who}"
    return Why("gate_full", why, None, f"raise the limit of {job.target}, or wait")


def _rate(scene: Scene) -> Why | None:
    if scene.rate_until is None or scene.rate_until <= scene.now:
        return None
    free, remedy = f"the next may start at {scene.at(scene.rate_until)}", "raise the rate, or wait"
    if scene.queue is not None and scene.queue.rate is not None:
        why = f"waits: queue {scene.queue.name} starts at most {show_rate(scene.queue.rate)}, and these are spent; {free}"
        return Why("queue_rate", why, None, remedy)
    if scene.bound is not None and scene.bound.rate is not None:
        why = f"waits: of {scene.job.gate} at most {show_rate(scene.bound.rate)} start, and these are spent; {free}"
        return Why("gate_rate", why, None, remedy)
    return None


def _busy(scene: Scene) -> Why | None:
    able = scene.fleet.able(scene.job.queue, scene.job.target)
    if not scene.fleet.busy(able):
        return None
    who = "the one worker that can run it is" if len(able) == 1 else f"all {len(able)} workers that can run it are"
    remedy = "start another worker, or raise the concurrency"
    return Why("workers_busy", f"waits: {who} busy{_others(scene)}", scene.job.due_at, remedy)


def _others(scene: Scene) -> str:
    return f"; {scene.due_in_queue} of queue {scene.job.queue} are due" if scene.due_in_queue > 1 else ""


# -- running --------------------------------------------------------------------------------------------------------------
def _running(scene: Scene) -> Why:
    job = scene.job
    node, where = scene.fleet.find(job.node), scene.fleet.call(job.node)
    if node is None or node.dead:
        return Why("node_dead", f"waits: {where} died while it ran; it is given back in a moment", job.claimed_at, _reaper(scene))
    if node.lease_until <= scene.now:
        why = f"runs on {where}, whose lease ended at {scene.at(node.lease_until)}: it is given back unless the node is heard of"
        return Why("lease_overdue", why, node.lease_until, _reaper(scene))
    if job.due_at > scene.now:
        return Why("claimed", f"waits on {where}: it starts at {scene.at(job.due_at)}", job.claimed_at)
    since = "" if job.claimed_at is None else f" since {scene.at(max(job.claimed_at, job.due_at))}"
    so_far = f"attempt {job.attempt} on {where}{since}{_progress(job)}"
    if job.cancel_requested:
        return Why("cancelling", f"runs, and was asked to stop: {so_far}", job.claimed_at)
    return Why("running", f"runs: {so_far}", job.claimed_at)


def _handed_over(scene: Scene) -> Why:
    job = scene.job
    which = f"attempt {job.attempt} was handed over{_progress(job)}"
    if job.due_at <= scene.now:
        why = f"waits: {which}, and its report is overdue since {scene.at(job.due_at)}: it counts as timed out in a moment"
        return Why("report_overdue", why, job.due_at, _reaper(scene))
    return Why("handed_over", f"runs elsewhere: {which}, and its report must come before {scene.at(job.due_at)}", job.claimed_at)


def _reaper(scene: Scene) -> str | None:
    """Any living node gives back what is lost; without one nobody does."""
    alive = any(not node.dead and node.lease_until > scene.now for node in scene.fleet.nodes)
    return None if alive else "start a node: none is alive"


def _progress(job: Job) -> str:
    value: Any = None if job.progress is None else decode(job.progress)
    if not isinstance(value, dict) or "done" not in value:
        return ""
    total = f" of {value['total']:g}" if value.get("total") else ""
    return f", {value['done']:g}{total} done{_in_brackets(value.get('note'))}"


# -- final ----------------------------------------------------------------------------------------------------------------
def _succeeded(scene: Scene) -> Why:
    job = scene.job
    took = "" if job.started_at is None or job.finished_at is None else f" in {_lapse(job.finished_at - job.started_at)}"
    where = "" if job.node is None else f" on {scene.fleet.call(job.node)}"
    return Why("succeeded", f"succeeded at {_end(scene)}: attempt {job.attempt}{where}{took}", job.finished_at)


def _dead(scene: Scene) -> Why:
    job = scene.job
    why = f"gave up at {_end(scene)}: {_why_dead(job)}{_in_brackets(job.error)}"
    match job.disposition:
        case "retried":
            return Why("dead_retried", f"{why}; it was retried as another job", job.finished_at)
        case "discarded":
            return Why("dead_discarded", f"{why}; it was discarded", job.finished_at)
        case _:
            return Why("dead", why, job.finished_at, "retry it when the cause is mended, or discard it")


def _why_dead(job: Job) -> str:
    own = {} if job.policies is None else decode(job.policies)
    if job.losses >= POISON_LOSSES:
        return f"{job.losses} workers died while running it"
    if own.get("delivery") == Delivery.AT_MOST_ONCE:
        return f"attempt {job.attempt} did not succeed, and it is delivered at most once"
    note = (job.error or "").partition("\n")[0]
    refusal = f", {note}" if note.startswith("not tried again") and "\n" in (job.error or "") else ""
    return f"{counted(job.failures, 'failed attempt')}{refusal}"


def _cancelled(scene: Scene) -> Why:
    job = scene.job
    when = f" during attempt {job.attempt}" if job.attempt else " before it started"
    return Why("cancelled", f"was cancelled at {_end(scene)}{when}{_in_brackets(job.error)}", job.finished_at)


def _skipped(scene: Scene) -> Why:
    reason = scene.job.error or "no reason was kept"
    kind = reason.partition(":")[0]
    code = f"skipped_{kind}" if kind in ("missed", "overlap") else "skipped"
    return Why(code, f"was skipped at {_end(scene)}: {reason}", scene.job.finished_at, "backfill the schedule if it shall run after all")


def _end(scene: Scene) -> str:
    return scene.at(scene.job.finished_at if scene.job.finished_at is not None else scene.now)


# -- words ----------------------------------------------------------------------------------------------------------------
def _in_brackets(text: str | None) -> str:
    return f" ({error_line(text)})" if text else ""


def counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _lapse(micros: Micros) -> str:
    """To the millisecond."""
    return duration.show(max(0, micros) // 1_000 * 1_000)
