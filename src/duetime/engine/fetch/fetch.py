"""One claim on behalf of the worker: what claimer and sweeper share."""

from __future__ import annotations

from duetime.engine.fetch.backpressure import Backpressure
from duetime.engine.run.worker import Worker
from duetime.model.instant import Micros
from duetime.model.lease import NodeId
from duetime.store import ClaimRequest, Claims, Lane, Store


class Fetch:
    def __init__(
        self, store: Store, worker: Worker, backpressure: Backpressure, node: NodeId, targets: tuple[str, ...]
    ) -> None:
        self.store = store
        self.worker = worker
        self.capacity = worker.capacity
        self.backpressure = backpressure
        self.node = node
        self.targets = targets
        self._keyed_first = False

    def request(
        self,
        lanes: tuple[Lane, ...],
        room: int,
        prefetch: Micros,
        *,
        sweep: bool = False,
        urgent: bool = False,
    ) -> ClaimRequest:
        self._keyed_first = not self._keyed_first
        permits = self.worker.free_permits
        return ClaimRequest(
            self.node, lanes, self.targets, room, prefetch, permits, self._keyed_first, sweep, urgent
        )

    async def claim(self, request: ClaimRequest) -> Claims:
        """Hands what was claimed to the worker."""
        began = self.capacity.monotonic()
        with self.capacity.reserve(request.room, sweep=request.sweep):
            claims = await self.store.claim(request)
        self.worker.take(claims.jobs, self.capacity.monotonic() - began, passing=request.urgent)
        return claims
