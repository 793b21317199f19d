"""The queue contract: how due jobs reach workers when a broker stands between them and the store.

A message names jobs by id and attempt number and never carries their payload. The store stays the truth: a
worker claims the named jobs there before it starts them, and acknowledges the message after that. So a
message that is lost, doubled, reordered or hours late costs time only. What a queue decides: nothing but the
order of its messages. Verbs raise `QueueUnavailable` when the broker cannot be reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from duetime.model.instant import Micros

MAX_TICKETS = 50  # in one message: with one id per message the broker would be the limit


class Ticket(NamedTuple):
    """A job that is due. It starts only while it is pending with this number of attempts."""

    id: UUID
    attempt: int


class Message(NamedTuple):
    """Due jobs of one queue and priority, in the order in which they should start."""

    queue: str
    priority: int
    tickets: tuple[Ticket, ...]  # at most MAX_TICKETS


class Received(NamedTuple):
    message: Message | None  # None: not a message of ours; acknowledge it
    receipt: Any  # the driver's own, for `acknowledge`


class TicketQueue(Protocol):
    """One connection to a broker, of a dispatcher or a worker. A driver reconnects by itself and declares
    what it needs again; it keeps no state that the broker does not have."""

    async def open(self) -> None:
        """Connect, and declare what every queue needs. Repeating it after a failure is the way back."""
        ...

    async def close(self) -> None:
        """Messages that were received and not acknowledged go to another worker."""
        ...

    async def push(self, messages: Sequence[Message]) -> None:
        """All are stored durably by the broker when it returns; after an error some may be."""
        ...

    async def receive(self, queues: Sequence[str], limit: int, timeout: Micros) -> list[Received]:
        """At most `limit` messages of these queues, more urgent ones first as far as the broker can. Waits
        until there is one, or the time is over. A message that is not acknowledged is delivered again."""
        ...

    async def acknowledge(self, deliveries: Sequence[Received]) -> None: ...

    async def depth(self, queues: Sequence[str]) -> Mapping[tuple[str, int], int]:
        """Messages by queue and priority that no worker has acknowledged, about; where the broker groups
        priorities, under the highest of the group."""
        ...
