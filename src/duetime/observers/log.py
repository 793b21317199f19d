"""Events as records of the logger "duetime". A healthy node logs little."""

from __future__ import annotations

import logging

from duetime.model import duration
from duetime.model.events import (
    AttemptsSettled,
    BrokerBack,
    BrokerLost,
    Event,
    FiresPlanned,
    JobsClaimed,
    JobsRecovered,
    JobsSubmitted,
    LeasesBack,
    LeasesLost,
    LoopBlocked,
    MessagesDropped,
    NodeFenced,
    NodeJoined,
    NodeLeft,
    NodesExpired,
    NodeWaits,
    ReadStoreChanged,
    SettlementsRefused,
    TurnFailed,
    TurnRecovered,
)
from duetime.model.job import Claimed, Ending, State
from duetime.model.settle import NOT_HERE, Settlement
from duetime.model.target import shown_name

_logger = logging.getLogger("duetime")
# Looked up once: every attempt compares with these.
_SUCCEEDED, _HANDED_OVER = Ending.SUCCEEDED, Ending.HANDED_OVER
FAILURES_PER_RECORD = 500  # some minutes of an outage
BLOCKED = (
    "%s has blocked this node for %s: use `await`, or a plain function, which runs in a thread. Stack:\n%s"
)
DROPPED = (
    "dropped %d messages of the broker that are not tickets: another program, or another version of Duetime, "
    "writes to its queues"
)
WAITS = "stopping: %s %s to finish; a second SIGINT or SIGTERM ends the wait"
WITHOUT_BROKER = "workers claim jobs from the store until it does"
WITHOUT_LEASES = "this node stops using its leases before they end, and plans without them then"


class EventLogger:
    """Writes a record for each event worth one. An outage of the store makes one record at its beginning, one
    at its end, and few in between, however often the parts of a node try again."""

    def __init__(self) -> None:
        self._failing: set[str] = set()  # parts of the node that wait for the store
        self._failures = 0

    def __call__(self, event: Event) -> None:
        match event:
            case TurnFailed(part, problem, wait, expected=True):
                self._log_outage(part, problem, duration.show_millis(wait))
            case TurnRecovered(part):
                self._recovered({part})
            case NodeJoined():
                self._recovered(self._failing)  # the parts of the former session are gone
                log_event(event)
            case _:
                log_event(event)

    def _log_outage(self, part: str, problem: Exception, wait: str) -> None:
        self._failing.add(part)
        self._failures += 1
        if self._failures == 1:
            _logger.warning("%s: %s; this node tries again until it succeeds", part, problem)
        elif self._failures % FAILURES_PER_RECORD == 0:
            _logger.warning("%s: %s; %d tries have failed", part, problem, self._failures)
        else:
            _logger.debug("%s: %s; next try in %s", part, problem, wait)

    def _recovered(self, parts: set[str]) -> None:
        if not self._failing:
            return
        self._failing = self._failing - parts
        if not self._failing:
            _logger.warning("the store works again, after %d failed tries", self._failures)
            self._failures = 0


def log_event(event: Event) -> None:
    match event:
        case JobsSubmitted() | JobsClaimed():
            pass  # the most frequent events, and not worth a record
        case AttemptsSettled(settlements, jobs):
            for settlement, job in zip(settlements, jobs, strict=True):
                if settlement.ending is not _SUCCEEDED and settlement.ending is not _HANDED_OVER:
                    _log_bad_end(settlement, job)
        case NodeJoined(node, roles):
            _logger.info("node %d joined as %s", node, ", ".join(roles), extra={"node": node})
        case NodeLeft(node):
            _logger.info("node %d left", node, extra={"node": node})
        case FiresPlanned(jobs, skipped):
            _logger.debug("planned %d fires, skipped %d", jobs, skipped)
        case _:
            _log_trouble(event)


def _log_trouble(event: Event) -> None:
    match event:
        case TurnFailed(part, problem, wait):
            _logger.error(
                "%s: unexpected %s; next try in %s",
                part,
                type(problem).__name__,
                duration.show_millis(wait),
                exc_info=problem,
            )
        case NodeFenced(node, reason):
            _logger.error(
                "node %d must stop: %s; it joins again under a new id", node, reason, extra={"node": node}
            )
        case NodesExpired(nodes):
            _logger.warning("node %s is dead: its lease has expired", ", ".join(map(str, nodes)))
        case JobsRecovered(count) if count:
            _logger.warning("gave back %d job%s of dead nodes", count, "" if count == 1 else "s")
        case SettlementsRefused(job_ids):
            _logger.warning(
                "%d results came too late and do not count: %s",
                len(job_ids),
                ", ".join(map(str, job_ids[:5])),
            )
        case LoopBlocked(silent, target, job_id, stack):
            what = "a callback" if target is None else f"task {target!r} (job {job_id})"
            _logger.error(
                BLOCKED,
                what,
                duration.show_millis(silent),
                stack,
                extra={"target": target, "job_id": None if job_id is None else str(job_id)},
            )
        case _:
            _log_service(event)


def _log_service(event: Event) -> None:
    """Services beside the store: the node works on without them."""
    match event:
        case BrokerLost(part, problem):
            _logger.warning("%s: the broker does not answer: %s; %s", part, problem, WITHOUT_BROKER)
        case BrokerBack(part):
            _logger.warning("%s: the broker answers again", part)
        case ReadStoreChanged(remark):
            _logger.warning("%s", remark or "lists and statistics come from the read replica again")
        case LeasesLost(problem):
            _logger.warning("leases: %s; %s", problem, WITHOUT_LEASES)
        case LeasesBack():
            _logger.warning("leases: etcd answers again")
        case MessagesDropped(count):
            _logger.warning(DROPPED, count)
        case NodeWaits(node, running, grace):
            jobs = "1 running job has" if running == 1 else f"{running} running jobs have"
            _logger.warning(WAITS, jobs, duration.show_millis(grace), extra={"node": node})
        case _:
            pass


def _log_bad_end(settlement: Settlement, job: Claimed) -> None:
    reason = (settlement.error or "").strip().rpartition("\n")[2]
    about = {
        "job_id": str(job.id),
        "target": shown_name(job.target),
        "attempt": settlement.attempt,
        "schedule": job.schedule,
    }
    match settlement.state:
        case State.DEAD:
            _logger.error(
                "job %s is a dead letter after attempt %d: %s",
                settlement.id,
                settlement.attempt,
                reason,
                extra=about,
            )
        case State.PENDING if settlement.ending in (Ending.FAILED, Ending.TIMED_OUT):
            wait = duration.show_millis(settlement.due_at - settlement.finished_at)
            said = "job %s: attempt %d %s, again in %s: %s"
            _logger.warning(
                said, settlement.id, settlement.attempt, settlement.ending, wait, reason, extra=about
            )
        case State.PENDING if reason.startswith(NOT_HERE):
            wait = duration.show_millis(settlement.due_at - settlement.finished_at)
            said = "job %s %s; it is left to other nodes, again in %s"
            _logger.warning(said, settlement.id, reason, wait, extra=about)
        case State.SKIPPED:
            _logger.info("job %s was skipped: %s", settlement.id, reason, extra=about)
        case _:
            _logger.info(
                "job %s: attempt %d %s", settlement.id, settlement.attempt, settlement.ending, extra=about
            )
