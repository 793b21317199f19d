"""The network between one process and the store: slow, lossy, and unclear about what was committed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from inspect import signature
from random import Random
from typing import Any, NoReturn, Protocol, TypeVar, cast

from duetime.errors import InvalidInput, StoreUnavailable
from duetime.model.hint import Hint
from duetime.model.instant import SECOND, Micros
from duetime.model.settle import Settlement
from duetime.store import Capabilities, Store, Unsubscribe
from duetime.testing.processes import NO_PROCESS
from duetime.testing.simulation.effects import RemoteTransaction, Write
from duetime.testing.simulation.hosts import Host
from duetime.testing.simulation.loop import SimulationLoop

Answer = TypeVar("Answer")
Verb = Callable[..., Coroutine[Any, Any, Answer]]
WRITES_OF_ATTEMPTS = ("commit", "take_once", "save_progress")
MAX_WAIT = 0.8  # seconds until a caller stops waiting for a lost request or reply
LATE_SHARE = 0.5  # of the requests that seem lost: the store executes them later
MAX_LATENESS = 4.0  # seconds
NEVER_LATE = ("save_progress",)  # a late checkpoint cannot be told from a newer one of the same attempt


class CommittingStore(Store, Protocol):
    async def commit(self, settlement: Settlement, writes: tuple[Write, ...]) -> bool:
        """Commit the transaction of a task: its writes and the settlement, or neither."""
        ...


class Backend(Protocol):
    """The store at the other end of the network."""

    crashes: int  # number of crashes of the store so far
    down: bool

    @property
    def store(self) -> CommittingStore: ...

    def now(self) -> Micros: ...

    def execute(self, verb: Verb[Any], host: Host | None, *arguments: Any) -> Any:
        """One transaction, checked."""
        ...


class NetworkLink:
    """Carries the calls of one host. A request on its way reaches the store even if its sender dies."""

    def __init__(self, loop: SimulationLoop, chance: Random, backend: Backend, host: Host) -> None:
        self._loop = loop
        self._random = chance.random
        self._backend = backend
        self._host = host

    def call(self, verb: Verb[Answer], *arguments: Any) -> asyncio.Future[Answer]:
        reply: asyncio.Future[Answer] = self._loop.create_future()
        conditions, draw = self._host.conditions, self._random()
        if self._host.process.dead:
            return reply
        if draw < conditions.lost_requests:
            self._host.disturb(self._backend.now())
            self._later(MAX_WAIT * self._random(), self._fail, reply, "the request was lost")
            if self._random() < LATE_SHARE and verb.__name__ not in NEVER_LATE:
                self._later(
                    MAX_LATENESS * self._random(),
                    self._arrive,
                    verb,
                    arguments,
                    reply,
                    True,
                    self._backend.crashes,
                )
            return reply
        lost = draw < conditions.lost_requests + conditions.lost_replies
        delay = self._delay() if verb.__name__ not in WRITES_OF_ATTEMPTS else self._delay_of_attempt()
        self._later(delay, self._arrive, verb, arguments, reply, lost, self._backend.crashes)
        return reply

    def _arrive(
        self,
        verb: Verb[Answer],
        arguments: tuple[Any, ...],
        reply: asyncio.Future[Answer],
        lost: bool,
        crashes: int,
    ) -> None:
        if self._backend.down or crashes != self._backend.crashes:
            self._later(self._delay(), self._fail, reply, "the store is down")
            return
        answer = self._backend.execute(verb, self._host, *arguments)
        if lost:
            self._host.disturb(self._backend.now())
            self._later(MAX_WAIT * self._random(), self._fail, reply, "the reply was lost")
        else:
            self._later(self._delay(), self._deliver, reply, answer, crashes)

    def _deliver(self, reply: asyncio.Future[Answer], answer: Answer, crashes: int) -> None:
        if crashes != self._backend.crashes:
            self._fail(reply, "the connection broke")
        elif not reply.done():
            reply.set_result(answer)

    def _fail(self, reply: asyncio.Future[Answer], why: str) -> None:
        self._host.disturb(self._backend.now())
        if not reply.done():
            reply.set_exception(StoreUnavailable(f"simulated: {why}"))
            reply.exception()  # marks it as retrieved: the caller may be dead

    def _delay(self) -> float:
        conditions = self._host.conditions
        if conditions.stalls and self._random() < conditions.stalls:
            self._host.disturb(self._backend.now() + int(2 * SECOND * conditions.stall))
            return conditions.stall * self._random()
        return conditions.latency * self._random()

    def _delay_of_attempt(self) -> float:
        late_share = self._host.conditions.late_writes
        return 0.5 + 2 * self._random() if late_share and self._random() < late_share else self._delay()

    def _later(self, delay: float, callback: Callable[..., None], *arguments: Any) -> None:
        self._loop.call_later(delay, callback, *arguments, context=NO_PROCESS)

    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        def relay(hint: Hint) -> None:
            conditions, draw = self._host.conditions, self._random()
            if draw < conditions.lost_hints or self._backend.down or self._host.gone:
                return
            for _ in range(2 if draw > 1 - conditions.doubled_hints else 1):
                self._loop.call_later(self._delay(), listener, hint, context=self._host.process.context)

        unsubscribe = self._backend.store.subscribe(relay)
        self._host.unsubscribes.append(unsubscribe)
        return unsubscribe


class RemoteStore:
    """The store as one process sees it: every verb goes over the network."""

    capabilities = Capabilities(durable=True, shared=True, hints=True, owner_gone=False, transactions=True)

    def __init__(self, link: NetworkLink, store: CommittingStore) -> None:
        self._link = link
        self._store = store

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        verb = getattr(self._store, name)
        parameters = signature(verb)

        async def call(*arguments: Any, **named: Any) -> Any:
            bound = parameters.bind(*arguments, **named)
            bound.apply_defaults()  # without these, `args` ends at the first one that was left out
            return await self._link.call(verb, *bound.args)

        setattr(self, name, call)  # found there from now on: most of the time went into signatures
        return call

    def clone(self) -> Store:
        return cast(Store, self)

    def within(self, connection: Any) -> NoReturn:
        raise InvalidInput("connection", "a simulated store has no connections that a caller could own")

    async def begin_transaction(self) -> RemoteTransaction:
        await self._link.call(self._store.time)  # it begins where the store is, or not at all
        return RemoteTransaction(
            lambda settlement, writes: self._link.call(self._store.commit, settlement, writes)
        )

    def subscribe(self, listener: Callable[[Hint], None]) -> Unsubscribe:
        return self._link.subscribe(listener)
