"""A connection that is made when a verb needs it, and again after it was lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Generic, Protocol, TypeVar

from duetime.queues.address import BrokerAddress

CALL_TIMEOUT = 10.0  # seconds, for one answer of the broker


class Session(Protocol):
    """One connection, and what is declared and received on it."""

    @property
    def is_closed(self) -> bool: ...

    async def close(self) -> None:
        """Does not raise."""
        ...


_Session = TypeVar("_Session", bound=Session)


class Reconnecting(Generic[_Session]):
    def __init__(
        self,
        address: BrokerAddress,
        connect: Callable[[], Awaitable[_Session]],
        errors: tuple[type[Exception], ...],
    ) -> None:
        self.session: _Session | None = None
        self._address = address
        self._connect = connect
        self._errors: tuple[type[Exception], ...] = (*errors, OSError)  # a timeout is one, too
        self._connecting = asyncio.Lock()

    @asynccontextmanager
    async def use(self) -> AsyncIterator[_Session]:
        """The session. An error of the client library ends it and becomes `QueueUnavailable`."""
        session = None
        try:
            session = await self._connected()
            yield session
        except self._errors as error:
            if session:
                await session.close()
            raise self._address.unavailable(error) from error

    async def close(self) -> None:
        session, self.session = self.session, None
        if session:
            await session.close()

    async def _connected(self) -> _Session:
        async with self._connecting:
            if self.session is None or self.session.is_closed:
                async with asyncio.timeout(CALL_TIMEOUT):
                    self.session = await self._connect()
            return self.session


class WakeUp:
    """Wakes a receiver: a message came, or it must look why none comes."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def announce(self) -> None:
        self._event.set()

    async def wait(self, give_up_at: float) -> bool:
        """False: the time of the loop's clock is over."""
        self._event.clear()
        try:
            async with asyncio.timeout_at(give_up_at):
                return await self._event.wait()
        except TimeoutError:
            return False
