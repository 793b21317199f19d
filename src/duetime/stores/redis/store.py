"""The Redis store: each verb goes to the component that implements it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn
from uuid import UUID

from duetime.errors import ConfigError, InvalidInput
from duetime.model.hint import Hint
from duetime.model.identity import StoreIdentity
from duetime.model.instant import Micros
from duetime.model.job import Claimed
from duetime.model.lease import NodeId
from duetime.model.settle import Settlement
from duetime.store import (
    Capabilities,
    ClaimRequest,
    Due,
    Migration,
    OfDeadNodes,
    OfNode,
    PastDeadline,
    Settled,
    Successors,
)
from duetime.stores.redis import retention, schema
from duetime.stores.redis.address import RedisAddress, parse
from duetime.stores.redis.bulk import RedisRows
from duetime.stores.redis.checkpoints import RedisCheckpoints
from duetime.stores.redis.claim import RedisClaims
from duetime.stores.redis.connection import RedisConnection
from duetime.stores.redis.event_log import RedisEventLog
from duetime.stores.redis.jobs import RedisJobs
from duetime.stores.redis.listing import RedisListing
from duetime.stores.redis.nodes import RedisNodes
from duetime.stores.redis.notifier import RedisNotifier
from duetime.stores.redis.offers import RedisOffers
from duetime.stores.redis.queues import RedisQueues
from duetime.stores.redis.records import RedisRecords
from duetime.stores.redis.schedules import RedisSchedules
from duetime.stores.redis.settle import RedisSettlements
from duetime.stores.redis.unique import RedisUniqueJobs


class RedisStore:
    capabilities = Capabilities(durable=True, shared=True, hints=True, owner_gone=True)

    def __init__(self, address: RedisAddress) -> None:
        self._address = address
        self._connection = RedisConnection(address)
        self._notifier = RedisNotifier(self._connection)
        self._settlements = RedisSettlements(self._connection, self._notifier)
        self._offers = RedisOffers(self._connection, self._notifier, self._settlements)
        self._claims = RedisClaims(self._connection, self._notifier, self._offers)
        # Each verb of the contract is that of a component.
        queues = RedisQueues(self._connection)
        self.set_queue, self.queues = queues.set, queues.known
        self._jobs = jobs = RedisJobs(self._connection, self._notifier, self._settlements)
        self.add_jobs, self.get_job, self.list_attempts = jobs.add, jobs.get, jobs.attempts
        self.cancel_job, self.reschedule_job = jobs.cancel, jobs.reschedule
        self.resolve_dead_job = jobs.resolve_dead
        listing = RedisListing(self._connection)
        self.list_jobs, self.count_jobs = listing.page, listing.count
        self.add_unique = RedisUniqueJobs(self._connection, self._notifier).add
        self.claim = self._claims.claim
        checkpoints = RedisCheckpoints(self._connection)
        self.save_progress, self.take_once = checkpoints.save, checkpoints.take_once
        schedules = RedisSchedules(self._connection, self._notifier)
        self.write_schedule, self.get_schedule = schedules.write, schedules.get
        self.list_schedules, self.list_versions = schedules.page, schedules.versions
        self.fire = schedules.fire
        self._nodes = nodes = RedisNodes(self._connection)
        self.join, self.beat = nodes.join, nodes.beat
        self.nodes, self.expire_nodes = nodes.known, nodes.expire
        records = RedisRecords(self._connection)
        self.get_record, self.put_record, self.list_records = records.get, records.put, records.page
        events = RedisEventLog(self._connection, self._notifier)
        self.add_events, self.list_events = events.add, events.page
        rows = RedisRows(self._connection, nodes)
        self.read_rows, self.write_rows = rows.read, rows.write
        self.subscribe = self._notifier.subscribe

    @classmethod
    def from_url(cls, url: str) -> RedisStore:
        return cls(parse(url))

    def __repr__(self) -> str:
        return f"RedisStore({self._address.place!r})"

    # -- opening and closing
    async def open(self) -> None:
        self._connection.reopen()
        try:
            await schema.check(self._connection)
        except BaseException:
            await self._connection.close()
            raise
        self._notifier.open()

    async def close(self) -> None:
        await self._offers.close()
        await self._nodes.close()
        await self._notifier.close()
        await self._connection.close()

    async def migrate(self, dry_run: bool = False) -> Migration:
        return await schema.migrate(self._address, dry_run)

    def clone(self) -> RedisStore:
        return RedisStore(self._address)

    async def time(self) -> Micros:
        return await self._connection.time()

    async def identity(self) -> StoreIdentity:
        """A server that was restarted and one that loaded a copied file look the same. Only the operator
        knows how long a store can have been without nodes."""
        return StoreIdentity(max_silence=self._address.max_silence)

    # -- what no component does alone
    async def due_jobs(self, request: ClaimRequest) -> Due:
        if request.segments:
            return await self._claims.due_jobs(request)
        return Due([], await self._claims.next_due(request))

    async def running_jobs(self, selection: OfNode | OfDeadNodes | PastDeadline, limit: int) -> list[Claimed]:
        return self._offers.without_assigned(await self._jobs.running_jobs(selection, limit))

    async def leave(self, node: NodeId) -> None:
        await self._offers.withdraw(node)
        await self._nodes.leave(node)

    async def settle(
        self, settlements: Sequence[Settlement], successors: Successors | None = None
    ) -> Settled:
        return await self._settlements.settle(settlements, successors)

    # -- transactions
    def within(self, connection: Any) -> NoReturn:
        raise InvalidInput(
            "connection",
            "the Redis store has no database whose transaction a job could join: leave it out, and submit "
            "after your transaction has committed",
        )

    async def begin_transaction(self) -> NoReturn:
        raise ConfigError(
            "the Redis store has no transactions: a task that needs ctx.connection needs sqlite:/// or postgresql://"
        )

    # -- retention and hints
    async def prune(self, old: Micros | Sequence[UUID], targets: Mapping[str, Micros] | None = None) -> int:
        if not isinstance(old, int):
            return await retention.forget(self._connection, old)
        return await retention.prune(self._connection, old, targets or {})

    async def hint(self, hints: Sequence[Hint]) -> None:
        """Does not wait until the hints are sent: a settling worker has more to do."""
        self._notifier.notify(hints)
