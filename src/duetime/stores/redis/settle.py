"""Writing decisions about running jobs, each only if the job still runs under that attempt number."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from struct import Struct

from duetime.model.hint import Hint, JobHint
from duetime.model.job import Ending, State
from duetime.model.settle import Settlement
from duetime.store import Settled, Successors
from duetime.stores.redis.connection import Argument, RedisConnection
from duetime.stores.redis.job_rows import attempt_rest, end_of, end_tail
from duetime.stores.redis.notifier import RedisNotifier, lane_hints_of
from duetime.stores.redis.rows import STATE_CODES, lane_of, optional, started_of, uuid_of

# id, attempt, state, disposition, started_at, finished_at, failures, losses
_pack_success = Struct(">16sIBBqqII").pack
_ATTEMPT = Struct(">I")
_REST = Struct(">qHI")  # due_at, wanted, length of the attempt row
_FINISHED, _SUCCEEDED = State.SUCCEEDED, Ending.SUCCEEDED
_FINISHED_CODE = STATE_CODES[_FINISHED]
MAX_WANTED = 65_535


class RedisSettlements:
    def __init__(self, connection: RedisConnection, notifier: RedisNotifier) -> None:
        self._connection = connection
        self._notifier = notifier

    async def settle(self, settlements: Sequence[Settlement], successors: Successors | None) -> Settled:
        if not settlements:
            await self._connection.command("PING")
            return Settled([], [])
        arguments = _arguments(settlements, successors)
        # Successors that start are lost with the reply: the caller asks for its running jobs instead.
        refused, following, lanes, again = await self._connection.run(
            "settle", *arguments, repeat=successors is None
        )
        if lanes or again:
            self._notifier.notify([*lane_hints_of(lanes, 0), *_again_hints(again)])
        return Settled([uuid_of(job_id) for job_id in refused], [started_of(row) for row in following])


def _arguments(settlements: Sequence[Settlement], successors: Successors | None) -> list[Argument]:
    """For `settle.lua`. Tens of thousands of decisions pass here every second: successes with the same
    result, mostly none, are packed into one argument."""
    wanted = {} if successors is None else successors.wanted
    packs: dict[bytes | None, list[bytes]] = defaultdict(list)
    others: list[Argument] = []
    for decision in settlements:
        identity, attempt, state, _, failures, losses, ending, started_at, finished_at, result, error = (
            decision
        )
        if (
            state is not _FINISHED
            or ending is not _SUCCEEDED
            or error is not None
            or started_at is None
            or (wanted and wanted.get(identity, 1) != 1)
        ):
            others += _other_arguments(decision, wanted.get(identity, 1))
        else:
            name = identity.int.to_bytes(16, "big")
            packs[result].append(
                _pack_success(name, attempt, _FINISHED_CODE, 0, started_at, finished_at, failures, losses)
            )
    arguments: list[Argument] = [0, 0, 0, 0] if successors is None else _following(successors)
    arguments.append(len(packs))
    for result, settled in packs.items():
        arguments += (end_tail(optional(result), b""), b"".join(settled))
    return arguments + others


def _other_arguments(decision: Settlement, wanted: int) -> tuple[Argument, ...]:
    state = decision.state
    error = optional(None if decision.error is None else decision.error.encode())
    end = end_of(
        STATE_CODES[state],
        0,
        -1 if decision.started_at is None else decision.started_at,
        decision.finished_at,
        decision.failures,
        decision.losses,
        optional(decision.result),
        error,
    )
    row, rest = _attempt(decision), b""
    if row or not state.final or wanted != 1:
        rest = _REST.pack(decision.due_at, min(MAX_WANTED, wanted), len(row)) + row + error
    return decision.id.bytes, _ATTEMPT.pack(decision.attempt), end, rest


def _attempt(decision: Settlement) -> bytes:
    """The row of an attempt that did not succeed, except one that never started and was released, or goes on
    externally."""
    ending = decision.ending
    if ending is _SUCCEEDED or decision.state is State.RUNNING:
        return b""
    if ending is Ending.RELEASED and decision.started_at is None:
        return b""
    return attempt_rest(
        decision.attempt, ending, decision.started_at, decision.finished_at, decision.error, decision.result
    )


def _following(successors: Successors) -> list[Argument]:
    queues, targets = successors.queues, successors.targets
    return [successors.node, successors.room, len(queues), *queues, len(targets), *targets]


def _again_hints(again: Sequence[Sequence[bytes]]) -> list[Hint]:
    hints: list[Hint] = []
    for name, due_at in again:
        lane = lane_of(name)
        hints.append(JobHint(lane.queue, lane.priority, int(due_at), lane.tenant))
    return hints
