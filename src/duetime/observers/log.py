"""Events as records of the logger "duetime". A healthy node logs little."""

from __future__ import annotations

import logging

from duetime.model import duration
from duetime.model.events import (
    AttemptsSettled,
    Event,
    FiresPlanned,
    JobsClaimed,
    JobsRecovered,
    JobsSubmitted,
    LoopBlocked,
    NodeFenced,
    NodeJoined,
    NodeLeft,
    NodesBuried,
    SettlementsRefused,
    TurnFailed,
)
from duetime.model.job import Claimed, Ending, State
from duetime.model.settle import Settlement

_logger = logging.getLogger("duetime")
# Looked up once: every attempt compares with these.
_SUCCEEDED, _HANDED_OVER = Ending.SUCCEEDED, Ending.HANDED_OVER
BLOCKED = (
    "%s has blocked this node for %s: use `await`, or a plain function, which runs in a thread. Stack:\n%s"
)


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
        case TurnFailed(part, problem, wait, expected=True):
            _logger.warning("%s: %s; next try in %s", part, problem, duration.show_millis(wait))
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
        case NodesBuried(nodes):
            _logger.warning("node %s is dead: its lease has expired", ", ".join(map(str, nodes)))
        case JobsRecovered(count) if count:
            _logger.warning("gave back %d jobs of dead nodes", count)
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
            pass


def _log_bad_end(settlement: Settlement, job: Claimed) -> None:
    reason = (settlement.error or "").strip().rpartition("\n")[2]
    about = {
        "job_id": str(job.id),
        "target": job.target,
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
        case _:
            _logger.info(
                "job %s: attempt %d %s", settlement.id, settlement.attempt, settlement.ending, extra=about
            )
