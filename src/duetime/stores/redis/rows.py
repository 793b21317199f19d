"""Rows of the server as values of the model. `lua/rows.lua` describes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple
from uuid import UUID, SafeUUID

from duetime.model import codec
from duetime.model.job import Claimed, JobDraft, State
from duetime.model.limit import Rate, TaskLimit
from duetime.model.permits import Candidate
from duetime.store import Lane

NEEDS_PERMIT, OVERLAPS, CANCEL, BEGUN, LIMITED, UNIQUE, SCHEDULED = 1, 2, 4, 8, 16, 32, 64
STATES = tuple(State)
STATE_CODES = {state: code for code, state in enumerate(STATES)}
COUNTS = Struct(">IIIq")  # attempt, failures, losses, created_at
_FIXED = Struct(">Bqq")  # flags, due_at, fire_time
_HEAD = Struct(">IIIqBqq")  # both
_unpack_head = _HEAD.unpack_from
RUN = Struct(">IIq")  # attempt, node, claimed_at
_LENGTH = Struct(">H")
_length = _LENGTH.unpack_from
_LIMIT = Struct(">IIQ")  # max_running, count and period of the rate; 0: none
# Then the payload: all else that only Python reads is None. Packed values begin with another byte
_RAW = b"\0"
_ONLY_PAYLOAD = (None,) * 6
_set_number, _set_safety = vars(UUID)["int"].__set__, vars(UUID)["is_safe"].__set__
_UNKNOWN_SAFETY = SafeUUID.unknown
_new_tuple = tuple.__new__


def uuid_of(value: bytes) -> UUID:
    """Tens of thousands pass here every second, and the constructor checks what needs no check."""
    new = object.__new__(UUID)
    _set_number(new, int.from_bytes(value, "big"))
    _set_safety(new, _UNKNOWN_SAFETY)
    return new


# -- names
def lane_name(queue: str, priority: int, tenant: str) -> str:
    return f"{queue}\0{priority}\0{tenant}"


def lane_of(name: bytes) -> Lane:
    queue, priority, tenant = name.decode().split("\0")
    return Lane(queue, int(priority), 0, tenant)


def unique_name(tenant: str, unique_key: str | None) -> str:
    return "" if unique_key is None else f"{tenant}\0{unique_key}"


# -- jobs: job_rows.py has those that callers read
def needs_permit(draft: JobDraft) -> bool:
    return draft.limit_key is not None or draft.overlap is not None


def row_rest(draft: JobDraft) -> bytes:
    """The live row of a draft without its counts and created_at, which the server adds."""
    limited, overlaps = draft.limit_key is not None, draft.overlap is not None
    flags = NEEDS_PERMIT * (limited or overlaps) + OVERLAPS * overlaps + LIMITED * limited
    flags += UNIQUE * (draft.unique_key is not None) + SCHEDULED * (draft.schedule is not None)
    names = _pack_names(
        draft.queue,
        draft.priority,
        draft.tenant,
        draft.target,
        draft.limit_key,
        draft.schedule_id,
        draft.unique_key,
        draft.schedule,
    )
    rest = (
        draft.payload,
        draft.overlap,
        draft.policies,
        draft.target_spec,
        draft.owner,
        draft.labels,
        None if draft.retry_of is None else draft.retry_of.bytes,
    )
    fixed = _FIXED.pack(flags, draft.due_at, draft.fire_time)
    if rest[1:] == _ONLY_PAYLOAD:
        return fixed + names + _RAW + draft.payload
    return fixed + names + codec.pack(rest)


def _read_rest(row: bytes, at: int) -> tuple[Any, ...]:
    """Payload, overlap, policies, target_spec, owner, labels, retry_of."""
    if row[at] == _RAW[0]:
        return row[at + 1 :], *_ONLY_PAYLOAD
    rest: tuple[Any, ...] = codec.unpack(row[at:])
    return rest


class _Names(NamedTuple):
    queue: str
    priority: int
    tenant: str
    target: str
    limit_key: str | None
    schedule_id: UUID | None
    unique_key: str | None
    schedule: str | None


@lru_cache(maxsize=10_000)
def _pack_names(
    queue: str,
    priority: int,
    tenant: str,
    target: str,
    limit_key: str | None,
    schedule_id: UUID | None,
    unique_key: str | None,
    schedule: str | None,
) -> bytes:
    """Most jobs of a batch have the same."""
    identity = b"" if schedule_id is None else schedule_id.bytes
    return b"".join(
        (
            _short(lane_name(queue, priority, tenant)),
            _short(target),
            _short(limit_key or ""),
            bytes((len(identity),)),
            identity,
            _short(unique_name(tenant, unique_key)),
            _short(schedule or ""),
        )
    )


@lru_cache(maxsize=10_000)
def _read_names(names: bytes, flags: int) -> _Names:
    lane, at = _read_short(names, 0)
    queue, priority, tenant = lane.split("\0")
    target, at = _read_short(names, at)
    limit_key, at = _read_short(names, at)
    at, end = at + 1, at + 1 + names[at]
    schedule_id = uuid_of(names[at:end]) if end > at else None
    unique, at = _read_short(names, end)
    schedule, _ = _read_short(names, at)
    return _Names(
        queue,
        int(priority),
        tenant,
        target,
        limit_key if flags & LIMITED else None,
        schedule_id,
        unique.partition("\0")[2] if unique else None,
        schedule if flags & SCHEDULED else None,
    )


# The names of the last row that was read: most jobs have the same as the one before. Names say their own
# length, so no row can begin with those of another. Threads replace it as a whole.
_recent: list[tuple[bytes, int, _Names]] = [(b"", -1, _Names("", 0, "", "", None, None, None, None))]


def _names_in(row: bytes, flags: int) -> tuple[_Names, int]:
    """And where they end."""
    flags &= LIMITED | SCHEDULED
    packed, recent_flags, names = _recent[0]
    if flags == recent_flags and row.startswith(packed, _HEAD.size):
        return names, _HEAD.size + len(packed)
    end = _HEAD.size
    for _ in range(3):
        end += 2 + _length(row, end)[0]
    end += 1 + row[end]
    for _ in range(2):
        end += 2 + _length(row, end)[0]
    packed = row[_HEAD.size : end]
    names = _read_names(packed, flags)
    _recent[0] = packed, flags, names
    return names, end


def _short(text: str) -> bytes:
    encoded = text.encode()
    return _LENGTH.pack(len(encoded)) + encoded


class LiveRow:
    """A live row, read."""

    __slots__ = (
        "attempt", "created_at", "due_at", "failures", "fire_time", "flags", "labels", "losses", "names",
        "overlap", "owner", "payload", "policies", "retry_of", "target_spec",
    )  # fmt: skip

    def __init__(self, row: bytes) -> None:
        (
            self.attempt,
            self.failures,
            self.losses,
            self.created_at,
            self.flags,
            self.due_at,
            self.fire_time,
        ) = _HEAD.unpack_from(row)
        self.names, end = _names_in(row, self.flags)
        (
            self.payload,
            self.overlap,
            self.policies,
            self.target_spec,
            self.owner,
            self.labels,
            retry_of,
        ) = _read_rest(row, end)
        self.retry_of = None if retry_of is None else uuid_of(retry_of)


def _read_short(row: bytes, at: int) -> tuple[str, int]:
    (length,) = _LENGTH.unpack_from(row, at)
    end = at + 2 + length
    return row[at + 2 : end].decode(), end


def claimed_of_all(
    ids: Sequence[bytes], rows: Sequence[bytes], checkpoints: Mapping[bytes, bytes]
) -> list[Claimed]:
    """Jobs that have just started. Tens of thousands pass here every second: most are like the one before,
    but for their id, payload and instants."""
    if len(ids) == 1:
        return [claimed_of(ids[0], rows[0], checkpoints.get(ids[0]))]
    claimed: list[Claimed] = []
    size = _HEAD.size
    start, end = b"", 0  # of a plain job: its names, and the byte that says that only a payload follows
    queue = priority = tenant = target = None
    for job_id, row in zip(ids, rows, strict=True):
        before, failures, losses, _, flags, due_at, fire_time = _unpack_head(row)
        if flags or before or not start or not row.startswith(start, size):
            claimed.append(claimed_of(job_id, row, checkpoints.get(job_id)))
            if not flags and not before:
                names, end = _names_in(row, flags)
                queue, priority, tenant, target, *_ = names
                end += 1
                is_plain = row[end - 1] == _RAW[0] and names.schedule_id is None
                start = row[size:end] if is_plain else b""
            continue
        made = object.__new__(UUID)  # as in `uuid_of`
        _set_number(made, int.from_bytes(job_id, "big"))
        _set_safety(made, _UNKNOWN_SAFETY)
        claimed.append(
            _new_tuple(
                Claimed,
                (
                    made, 1, target, row[end:], due_at, queue, priority, fire_time, failures, losses, False,
                    None, None, None, None, None, None, tenant, False, None, None,
                ),
            )
        )  # fmt: skip
    return claimed


def claimed_of(
    job_id: bytes, row: bytes, checkpoint: bytes | None, permit: bytes = b"", attempt: int | None = None
) -> Claimed:
    """A job that has just started; or one that runs under this attempt number."""
    before, failures, losses, _, flags, due_at, fire_time = _unpack_head(row)
    names, end = _names_in(row, flags)
    payload, overlap, policies, target_spec, _, _, _ = _read_rest(row, end)
    queue, priority, tenant, target, limit_key, schedule_id, _, schedule = names
    return tuple.__new__(
        Claimed,
        (
            uuid_of(job_id),
            before + 1 if attempt is None else attempt,
            target,
            payload,
            due_at,
            queue,
            priority,
            fire_time,
            failures,
            losses,
            flags & CANCEL > 0,
            schedule_id,
            schedule,
            overlap,
            policies,
            target_spec,
            checkpoint,
            tenant,
            flags & BEGUN > 0,
            limit_key,
            uuid_of(permit) if permit else None,
        ),
    )


def started_of(reply: list[Any]) -> Claimed:
    """From what `start_job` in `rows.lua` returns."""
    return claimed_of(*reply)


def running_of(reply: list[Any]) -> Claimed:
    """From id, live row, running record and checkpoint."""
    job_id, row, run, checkpoint = reply
    return claimed_of(job_id, row, checkpoint, run[RUN.size :], RUN.unpack_from(run)[0])


def candidate_of(job_id: bytes, row: bytes) -> Candidate:
    job = LiveRow(row)
    return Candidate(
        uuid_of(job_id),
        job.names.queue,
        job.names.priority,
        job.due_at,
        job.fire_time,
        job.attempt,
        job.names.target,
        job.names.limit_key,
        job.names.schedule_id,
        job.overlap,
        job.names.tenant,
    )


def optional(value: bytes | None) -> bytes:
    """A result or an error in a past row."""
    return b"" if value is None else b"\1" + value


# -- limits
def limit_row(limit: TaskLimit) -> bytes:
    count, period = limit.rate or (0, 0)
    return _LIMIT.pack(limit.max_running or 0, count, period)


def limit_of(target: str, row: bytes) -> TaskLimit:
    max_running, count, period = _LIMIT.unpack(row)
    return TaskLimit(target, max_running or None, Rate(count, period) if count else None)


def pairs(flat: Iterable[Any]) -> zip[tuple[Any, Any]]:
    """Fields and values of a hash."""
    iterator = iter(flat)
    return zip(iterator, iterator, strict=True)
