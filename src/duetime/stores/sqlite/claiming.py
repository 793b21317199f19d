"""One claim: which pending jobs a node gets, and what becomes of those that may not run beside an earlier one."""

from __future__ import annotations

from operator import itemgetter

from duetime.model.instant import Micros
from duetime.model.job import Overlap
from duetime.model.lease import NodeId
from duetime.store import CancelHint, ClaimRequest
from duetime.stores.sqlite.jobs import end_unstarted
from duetime.stores.sqlite.rows import text_of, uuid_of
from duetime.stores.sqlite.session import Row, Session, Transaction

# Of one claim. Whatever lies behind them comes forward as soon as these have started.
MOST_EXCLUSIVE = 1_000

# A candidate is its row id, its lane's place in the request, and then a model.job.Claimed.
_PREFIX = 2
_lane_and_due = itemgetter(1, _PREFIX + 4)
_fire_order = itemgetter(_PREFIX + 7, _PREFIX)
_SCHEDULE_ID = _PREFIX + 11


def claim(transaction: Transaction, request: ClaimRequest) -> list[Row]:
    """Answers rows for `claimed_of`, in order of lane and due time."""
    if not request.lanes or not transaction.value("may_claim", (request.node, transaction.now)):
        return []
    lanes, targets, until = text_of(request.lanes), text_of(request.targets), transaction.now + request.prefetch
    taken = transaction.all("claimable", (lanes, targets, until, request.room))
    exclusive = request.exclusive and transaction.value("any_exclusive")
    if exclusive:
        taken += _oldest_fires(transaction.all("claimable_exclusive", (lanes, targets, until, MOST_EXCLUSIVE)))
        taken = sorted(taken, key=_lane_and_due)[: request.room]
    if taken:
        transaction.change("claim", (request.node, transaction.now, text_of([row[0] for row in taken])))
    if exclusive:
        _hold_back(transaction, lanes, targets)
    return [row[_PREFIX:] for row in taken]


def next_due(session: Session, request: ClaimRequest, now: Micros) -> Micros | None:
    found: Micros | None = session.value("next_due", (text_of(request.lanes), text_of(request.targets), now + request.prefetch))
    return found


def _oldest_fires(candidates: list[Row]) -> list[Row]:
    """One per schedule: jitter and rescheduling let a later fire fall due first."""
    alone = [row for row in candidates if row[_SCHEDULE_ID] is None]
    oldest = {row[_SCHEDULE_ID]: row for row in sorted(candidates, key=_fire_order, reverse=True)}
    oldest.pop(None, None)
    return alone + list(oldest.values())


def _hold_back(transaction: Transaction, lanes: str, targets: str) -> None:
    """Those that are due while an earlier job of their schedule has started and not finished."""
    blocked = {row[0]: row for row in transaction.all("blocked", (lanes, targets, transaction.now))}
    for job_id, overlap, in_the_way, node in blocked.values():
        if overlap == Overlap.SKIP:
            end_unstarted(transaction, job_id, "skipped", f"overlap: job {uuid_of(in_the_way)} has started and not finished")
        else:
            transaction.change("request_cancel", (in_the_way,))
            transaction.tell([] if node is None else [CancelHint(NodeId(node), uuid_of(in_the_way))])
