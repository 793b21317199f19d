"""Messages as bytes, the same for every broker: {"v": 1, "queue": ..., "priority": ..., "jobs": [[id, n]]}"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from duetime.model.codec import encode, reader
from duetime.model.job import HIGHEST_PRIORITY, LOWEST_PRIORITY
from duetime.queue import MAX_TICKETS, Message, Ticket

VERSION: Literal[1] = 1
MAX_ATTEMPTS = 1 << 31  # more than any job has, and no store refuses the number


@dataclass(slots=True)
class _Body:
    v: Literal[1]
    queue: str
    priority: int
    jobs: tuple[Ticket, ...]


_read = reader(_Body)


def to_bytes(message: Message) -> bytes:
    return encode(
        {
            "v": VERSION,
            "queue": message.queue,
            "priority": message.priority,
            "jobs": message.tickets,
        }
    )


def from_bytes(body: bytes) -> Message | None:
    """None for anything that is not a message of ours, whatever it is: it must not stop a worker."""
    try:
        read: _Body = _read(body)
    except Exception:
        return None
    known = (
        LOWEST_PRIORITY <= read.priority <= HIGHEST_PRIORITY
        and 0 < len(read.jobs) <= MAX_TICKETS
        and all(0 <= ticket.attempt < MAX_ATTEMPTS for ticket in read.jobs)
    )
    return Message(read.queue, read.priority, read.jobs) if known else None


# Brokers without priorities have a stream, subject, topic or queue for each of these groups, most urgent
# first, named after the highest priority of the group.
GROUPS = (9, 6, 3)


def group_of(priority: int) -> int:
    return next(group for group in reversed(GROUPS) if priority <= group)
