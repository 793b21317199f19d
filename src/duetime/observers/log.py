"""Events as log records of the logger "duetime", quiet when all is well."""

from __future__ import annotations

import logging

from duetime.model import duration
from duetime.model.attempt import Ending
from duetime.model.events import (
    AttemptsSettled,
    Event,
    FiresPlanned,
    JobsRecovered,
    LoopBlocked,
    NodeFenced,
    NodeJoined,
    NodeLeft,
    NodesBuried,
    SettlementsRefused,
    TurnFailed,
)
from duetime.model.instant import Micros
from duetime.model.job import State
from duetime.model.settle import Settlement

_logger = logging.getLogger("duetime")
BLOCKED = "%s has blocked this node for %s: nothing else runs; use `await`, or a plain function, which runs in a thread. It is at\n%s"


def log_event(event: Event) -> None:
    match event:
        case AttemptsSettled(settlements):
            for settlement in settlements:
                if settlement.ending not in (Ending.SUCCEEDED, Ending.HANDED_OVER):
                    _log_bad_end(settlement)
        case NodeJoined(node, roles):
            _logger.info("node %d joined as %s", node, ", ".join(roles))
        case NodeLeft(node):
            _logger.info("node %d left", node)
        case FiresPlanned(jobs, skipped):
            _logger.debug("planned %d fires, skipped %d", jobs, skipped)
        case _:
            _log_trouble(event)


def _log_trouble(event: Event) -> None:
    match event:
        case TurnFailed(part, problem, wait, expected=True):
            _logger.warning("%s: %s; next try in %s", part, problem, _rounded(wait))
        case TurnFailed(part, problem, wait):
            _logger.error("%s: unexpected %s; next try in %s", part, type(problem).__name__, _rounded(wait), exc_info=problem)
        case NodeFenced(node, reason):
            _logger.error("node %d must stop: %s; it joins again under a new id", node, reason)
        case NodesBuried(nodes):
            _logger.warning("declared dead: node %s", ", ".join(map(str, nodes)))
        case JobsRecovered(count) if count:
            _logger.warning("gave back %d jobs of dead nodes", count)
        case SettlementsRefused(job_ids):
            _logger.warning("refused: %d results came too late and do not count: %s", len(job_ids), ", ".join(map(str, job_ids[:5])))
        case LoopBlocked(silent, target, job_id, stack):
            what = "the event loop" if target is None else f"task {target!r} (job {job_id})"
            _logger.error(BLOCKED, what, _rounded(silent), stack)
        case _:
            pass


def _rounded(wait: Micros) -> str:
    return duration.show(wait // 1_000 * 1_000)


def _log_bad_end(settlement: Settlement) -> None:
    reason = (settlement.error or "").strip().rpartition("\n")[2]
    match settlement.state:
        case State.DEAD:
            _logger.error("job %s is a dead letter after attempt %d: %s", settlement.id, settlement.attempt, reason)
        case State.PENDING if settlement.ending in (Ending.FAILED, Ending.TIMED_OUT):
            wait = _rounded(max(0, settlement.due_at - settlement.finished_at))
            _logger.warning("job %s: attempt %d %s, again in %s: %s", settlement.id, settlement.attempt, settlement.ending, wait, reason)
        case _:
            _logger.info("job %s: attempt %d %s", settlement.id, settlement.attempt, settlement.ending)
