"""Messages that arrive while others are on the way go together, and none is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from duetime.invokers.publish.publisher import MessageGroups, OutgoingMessage


def message(number: int) -> OutgoingMessage:
    return OutgoingMessage(b"x", None, str(number))


async def test_message_that_comes_when_a_group_ends_is_sent() -> None:
    sent: list[str] = []

    async def send(group: Sequence[OutgoingMessage]) -> list[None]:
        sent.extend(one.id for one in group)
        return [None] * len(group)

    groups = MessageGroups(send, max_messages=10, max_bytes=1_000)
    tasks = []
    for number in range(20):  # one in each turn of the event loop: some come when a group has just ended
        tasks.append(asyncio.create_task(groups.add(message(number))))
        await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await asyncio.gather(*tasks)
    assert sorted(map(int, sent)) == [*range(20)]


async def test_message_of_an_attempt_that_has_ended_is_not_sent() -> None:
    sent: list[str] = []
    answer = asyncio.Event()

    async def send(group: Sequence[OutgoingMessage]) -> list[None]:
        sent.extend(one.id for one in group)
        await answer.wait()
        return [None] * len(group)

    groups = MessageGroups(send, max_messages=1, max_bytes=1_000)
    first, gone, last = (asyncio.create_task(groups.add(message(number))) for number in (1, 2, 3))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait([gone])
    answer.set()
    async with asyncio.timeout(60):
        await asyncio.gather(first, last)
    assert sent == ["1", "3"]
