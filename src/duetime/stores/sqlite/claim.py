"""One claim: which pending jobs become running under a node.

Nearly all jobs need no permit and are in a queue without limits: one statement reads them and one starts
them. Where there are others, `permits.decide` chooses among the candidates, and the decision is executed in
the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterator

from duetime.model.hint import CancelHint, JobHint
from duetime.model.ids import SEGMENTS, random_bytes
from duetime.model.instant import Micros
from duetime.model.lease import NodeId
from duetime.model.permits import SUPERSEDED, Candidate, Decision, decide, skip_reason
from duetime.store import ClaimRequest, Due, DueJob, Lane
from duetime.stores.sqlite import limits
from duetime.stores.sqlite.jobs import end_pending
from duetime.stores.sqlite.queues import JUST_NOW, QueueLimits
from duetime.stores.sqlite.rows import candidate_of, plain_candidate_of, text_of, uuid_of
from duetime.stores.sqlite.session import Row, SqliteSession, SqliteTransaction

MAX_CANDIDATES = 1_000  # restricted jobs that one claim looks at, in each group of lanes


def claim(
    transaction: SqliteTransaction, request: ClaimRequest, sweep: limits.PermitSweep
) -> tuple[list[Row], bool]:
    """Returns rows for `claimed_of`, and whether another claim may find more."""
    if not (request.lanes or request.tickets) or request.room <= 0:
        return [], False
    [(alive, restricted, waiting, restricted_queues)] = transaction.all(
        "may_claim", (request.node, transaction.now)
    )
    if not alive:
        return [], False
    if request.tickets:
        return _claim_by_decision(transaction, request)
    if waiting and request.sweep and not request.urgent:
        restricted = sweep.run(transaction) or restricted
    parameters = (text_of(request.lanes), text_of(request.targets), transaction.now + request.prefetch)
    if restricted_queues or (restricted and transaction.all("restricted_candidates", (*parameters, 1, True))):
        return _claim_by_decision(transaction, request)
    taken = transaction.all("claimable", (*parameters, request.room))
    if taken:
        transaction.change("start_plain", (request.node, transaction.now, text_of([row[0] for row in taken])))
    return [row[1:] for row in taken], False


def next_due(session: SqliteSession, request: ClaimRequest, now: Micros) -> Due:
    queues = QueueLimits(session, now)
    lanes = [lane for lane in request.lanes if lane.queue not in queues.paused]
    after = now + request.prefetch
    # A claim leaves restricted jobs that it found by prefetch and that may not start yet: they are looked for
    # from a little before now.
    restricted_after = now - JUST_NOW if request.prefetch else after
    due = session.value("next_due", (text_of(lanes), text_of(request.targets), after, restricted_after))
    instants = (due, queues.next_start(session, request))
    return Due([], min((instant for instant in instants if instant is not None), default=None))


def due_jobs(session: SqliteSession, request: ClaimRequest, now: Micros) -> Due:
    queues = QueueLimits(session, now)
    lanes = [lane for lane in request.lanes if lane.queue not in queues.paused]
    until, segments = now + request.prefetch, set(request.segments)
    endings = [f"{byte:02X}" for byte in range(256) if byte % SEGMENTS in segments]
    rows = session.all("due_jobs", (text_of(lanes), text_of(endings), until, request.room))
    jobs = [DueJob._make((uuid_of(row[0]), *row[1:6], row[6] == 1)) for row in rows]
    order = {(lane.queue, lane.priority, lane.tenant): at for at, lane in enumerate(lanes)}
    due = [job for job in jobs if job.due_at <= until]
    due.sort(key=lambda job: (order[job.queue, job.priority, job.tenant], job.due_at))
    return Due(due, min((job.due_at for job in jobs if job.due_at > until), default=None))


def _claim_by_decision(transaction: SqliteTransaction, request: ClaimRequest) -> tuple[list[Row], bool]:
    queues = QueueLimits(transaction, transaction.now)
    read = _named if request.tickets else _candidates
    candidates = list(read(transaction, request, queues))
    if not candidates:
        return [], False
    usage = limits.usage(transaction, candidates, queues.in_use)
    permits = request.room if request.permits is None else request.permits
    decision = decide(candidates, usage, request.room, permits, request.keyed_first)
    limited = {job.id for job in candidates if job.limit_key is not None}
    starting = {job_id.bytes: random_bytes(16) if job_id in limited else None for job_id in decision.start}
    rows = limits.start(transaction, request.node, starting)
    _set_aside(transaction, decision)
    _spend(transaction, decision)
    promoted = [
        hint for name, count in decision.promote.items() for hint in limits.promote(transaction, name, count)
    ]
    if promoted and len(rows) >= request.room:
        transaction.tell(promoted)  # for other nodes: this one has no room for them
    return rows, decision.set_aside or bool(promoted)


def _candidates(
    transaction: SqliteTransaction, request: ClaimRequest, queues: QueueLimits
) -> Iterator[Candidate]:
    """Lane by lane, each by due time."""
    targets, until = text_of(request.targets), transaction.now + request.prefetch
    order = {(lane.queue, lane.priority, lane.tenant): at for at, lane in enumerate(request.lanes)}
    with_keys = request.permits is None or request.permits > 0
    for lanes in _groups(request.lanes, queues):
        vacancies = queues.vacancies.get(lanes[0].queue)
        room = request.room if vacancies is None else min(vacancies, request.room)
        parameters = (text_of(lanes), targets, until)
        found = [plain_candidate_of(row) for row in transaction.all("claimable", (*parameters, room))]
        found += [
            candidate_of(row)
            for row in transaction.all("restricted_candidates", (*parameters, MAX_CANDIDATES, with_keys))
        ]
        yield from sorted(found, key=lambda job: (order[job.queue, job.priority, job.tenant], job.due_at))


def _named(transaction: SqliteTransaction, request: ClaimRequest, queues: QueueLimits) -> Iterator[Candidate]:
    """In the order of their tickets."""
    tickets = [(bytearray(ticket.id.bytes), ticket.attempt) for ticket in dict.fromkeys(request.tickets)]
    found = {job.id: job for job in map(candidate_of, transaction.all_many("named_candidates", tickets))}
    until = transaction.now + request.prefetch
    for job_id in dict.fromkeys(ticket.id for ticket in request.tickets):
        job = found.get(job_id)
        if job is None or job.queue in queues.paused or job.target not in request.targets:
            continue
        if job.due_at <= until:
            yield job


def _groups(lanes: tuple[Lane, ...], queues: QueueLimits) -> list[list[Lane]]:
    """Lanes of open queues to be read together: those of a queue with limits alone, from the beginning,
    because jobs that a limit holds up are below the lane's lower bound."""
    groups: list[list[Lane]] = []
    joins = False
    for lane in lanes:
        if lane.queue in queues.paused:
            continue
        limited = lane.queue in queues.vacancies
        if joins and not limited:
            groups[-1].append(lane)
        else:
            groups.append([lane._replace(low=0) if limited else lane])
        joins = not limited
    return groups


def _set_aside(transaction: SqliteTransaction, decision: Decision) -> None:
    transaction.change_many(
        "wait", [(bytearray(job_id.bytes), name) for job_id, name in decision.wait.items()]
    )
    for job_id, due_at in decision.ask_at.items():
        transaction.change("ask_at", (job_id.bytes, due_at))
    for job_id, in_the_way in decision.skip.items():
        end_pending(transaction, job_id.bytes, "skipped", skip_reason(in_the_way))
    for job_id in decision.cancel:
        for *due, node in transaction.all("ask_to_stop", (job_id.bytes, transaction.now, SUPERSEDED)):
            if node is None:
                transaction.tell([JobHint(*due)])
            elif node:
                transaction.tell([CancelHint(NodeId(node), job_id)])


def _spend(transaction: SqliteTransaction, decision: Decision) -> None:
    transaction.change_many("keep_key_use", [(name, *use[1:]) for name, use in decision.keys.items()])
    for name, spent_until in decision.queues.items():
        transaction.change("spend_queue", (name, spent_until))
