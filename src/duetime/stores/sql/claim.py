"""One claim: which pending jobs become running under a node.

Nearly all jobs need no permit and are in a queue without limits: one statement reads them and one starts
them. Where there are others, `permits.decide` chooses among the candidates, and the decision is executed in
the same transaction.
"""

from __future__ import annotations

from duetime.model.hint import CancelHint, JobHint
from duetime.model.ids import SEGMENTS, random_bytes
from duetime.model.lease import NodeId
from duetime.model.permits import SUPERSEDED, Candidate, Decision, decide, skip_reason
from duetime.store import ClaimRequest, Due, DueJob, Lane
from duetime.stores.sql import limits
from duetime.stores.sql.jobs import end_pending
from duetime.stores.sql.queues import JUST_NOW, QueueLimits, queue_limits
from duetime.stores.sql.queues import next_due as earliest
from duetime.stores.sql.rows import candidate_of, plain_candidate_of, uuid_of
from duetime.stores.sql.session import Row, SqlSession, SqlTransaction

MAX_CANDIDATES = 1_000  # restricted jobs that one claim looks at, in each group of lanes


async def claim(
    transaction: SqlTransaction, request: ClaimRequest, sweep: limits.PermitSweep
) -> tuple[list[Row], bool]:
    """Returns rows for `claimed_of`, and whether another claim may find more."""
    if not (request.lanes or request.tickets) or request.room <= 0:
        return [], False
    [(alive, restricted, waiting, restricted_queues)] = await transaction.all(
        "may_claim", (request.node, transaction.now)
    )
    if not alive:
        return [], False
    if request.tickets:
        return await _claim_by_decision(transaction, request, restricted=False)
    if waiting and request.sweep and not request.urgent:
        restricted = await sweep.run(transaction) or restricted
    lanes, targets = request.lanes, transaction.listed(request.targets)
    until = transaction.now + request.prefetch
    restricted = restricted and await transaction.each_lane("any_restricted", lanes, (targets, until))
    if restricted or restricted_queues:
        return await _claim_by_decision(transaction, request, bool(restricted))
    taken = await transaction.first_of_lanes("claimable", lanes, (targets, until), request.room)
    if taken:
        started = transaction.listed([row[0] for row in taken])
        await transaction.change("start_plain", (request.node, transaction.now, started))
    return [row[1:] for row in taken], False


async def next_due(session: SqlSession, request: ClaimRequest) -> Due:
    now = await session.time()
    queues = await queue_limits(session, now)
    lanes = [lane for lane in request.lanes if lane.queue not in queues.paused]
    after = now + request.prefetch
    # A claim leaves restricted jobs that it found by prefetch and that may not start yet: they are looked for
    # from a little before now.
    restricted_after = now - JUST_NOW if request.prefetch else after
    due = await earliest(session, lanes, request.targets, after, restricted_after)
    instants = (due, await queues.next_start(session, request))
    return Due([], min((instant for instant in instants if instant is not None), default=None))


async def due_jobs(session: SqlSession, request: ClaimRequest) -> Due:
    now = await session.time()
    queues = await queue_limits(session, now)
    lanes = [lane for lane in request.lanes if lane.queue not in queues.paused]
    until, segments = now + request.prefetch, set(request.segments)
    endings = [f"{byte:02X}" for byte in range(256) if byte % SEGMENTS in segments]
    rows = await session.each_lane("due_jobs", lanes, (session.listed(endings), until, request.room))
    jobs = [DueJob._make((uuid_of(row[0]), *row[1:6], row[6] == 1)) for row in rows]
    order = {(lane.queue, lane.priority, lane.tenant): at for at, lane in enumerate(lanes)}
    due = [job for job in jobs if job.due_at <= until]
    due.sort(key=lambda job: (order[job.queue, job.priority, job.tenant], job.due_at))
    return Due(due, min((job.due_at for job in jobs if job.due_at > until), default=None))


async def _claim_by_decision(
    transaction: SqlTransaction, request: ClaimRequest, restricted: bool
) -> tuple[list[Row], bool]:
    """`restricted`: jobs that need a permit are due."""
    queues = await queue_limits(transaction, transaction.now)
    restricted = restricted or any(lane.queue in queues.in_use for lane in request.lanes)
    # Before the candidates are read: of the jobs of a schedule another claim would see only the later ones.
    if restricted and await transaction.lock_permits():
        queues = await queue_limits(transaction, transaction.now)
    candidates = await (_named if request.tickets else _candidates)(transaction, request, queues)
    if not candidates:
        return [], False
    named = request.tickets and any(_is_restricted(job, queues) for job in candidates)
    if named and await transaction.lock_permits():
        queues = await queue_limits(transaction, transaction.now)
    usage = await limits.usage(transaction, candidates, queues.in_use)
    permits = request.room if request.permits is None else request.permits
    decision = decide(candidates, usage, request.room, permits, request.keyed_first)
    limited = {job.id for job in candidates if job.limit_key is not None}
    starting = {job_id.bytes: random_bytes(16) if job_id in limited else None for job_id in decision.start}
    rows = await limits.start(transaction, request.node, starting)
    await _set_aside(transaction, decision)
    await _spend(transaction, decision)
    promoted = [
        hint
        for name, count in decision.promote.items()
        for hint in await limits.promote(transaction, name, count)
    ]
    if not transaction.serial:  # other claims passed over the rows that this one had locked and left
        left = set(decision.left)
        transaction.tell(
            [JobHint(job.queue, job.priority, job.due_at, job.tenant) for job in candidates if job.id in left]
        )
    if promoted and len(rows) >= request.room:
        transaction.tell(promoted)  # for other nodes: this one has no room for them
    return rows, decision.set_aside or bool(promoted)


def _is_restricted(job: Candidate, queues: QueueLimits) -> bool:
    return job.limit_key is not None or job.overlap is not None or job.queue in queues.in_use


async def _candidates(
    transaction: SqlTransaction, request: ClaimRequest, queues: QueueLimits
) -> list[Candidate]:
    """Lane by lane, each by due time."""
    targets, until = transaction.listed(request.targets), transaction.now + request.prefetch
    candidates: list[Candidate] = []
    order = {(lane.queue, lane.priority, lane.tenant): at for at, lane in enumerate(request.lanes)}
    with_keys = request.permits is None or request.permits > 0
    for lanes in _groups(request.lanes, queues):
        vacancies = queues.vacancies.get(lanes[0].queue)
        room = request.room if vacancies is None else min(vacancies, request.room)
        plain = await transaction.first_of_lanes("claimable", lanes, (targets, until), room)
        others = await transaction.first_of_lanes(
            "restricted_candidates", lanes, (targets, until, with_keys), MAX_CANDIDATES
        )
        found = [*map(plain_candidate_of, plain), *map(candidate_of, others)]
        candidates += sorted(found, key=lambda job: (order[job.queue, job.priority, job.tenant], job.due_at))
    return candidates


async def _named(transaction: SqlTransaction, request: ClaimRequest, queues: QueueLimits) -> list[Candidate]:
    """In the order of their tickets."""
    tickets = [(bytearray(ticket.id.bytes), ticket.attempt) for ticket in dict.fromkeys(request.tickets)]
    found = {
        job.id: job for job in map(candidate_of, await transaction.all_many("named_candidates", tickets))
    }
    until = transaction.now + request.prefetch
    named = (found.get(job_id) for job_id in dict.fromkeys(ticket.id for ticket in request.tickets))
    return [
        job
        for job in named
        if job is not None
        and job.queue not in queues.paused
        and job.target in request.targets
        and job.due_at <= until
    ]


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


async def _set_aside(transaction: SqlTransaction, decision: Decision) -> None:
    await transaction.change_many(
        "wait", [(bytearray(job_id.bytes), name) for job_id, name in decision.wait.items()]
    )
    for job_id, due_at in decision.ask_at.items():
        await transaction.change("ask_at", (job_id.bytes, due_at))
    for job_id, in_the_way in decision.skip.items():
        await end_pending(transaction, job_id.bytes, "skipped", skip_reason(in_the_way))
    for job_id in decision.cancel:
        for *due, node in await transaction.all("ask_to_stop", (job_id.bytes, transaction.now, SUPERSEDED)):
            if node is None:
                transaction.tell([JobHint(*due)])
            elif node:
                transaction.tell([CancelHint(NodeId(node), job_id)])


async def _spend(transaction: SqlTransaction, decision: Decision) -> None:
    await transaction.change_many("keep_key_use", [(name, *use[1:]) for name, use in decision.keys.items()])
    for name, spent_until in decision.queues.items():
        await transaction.change("spend_queue", (name, spent_until))
