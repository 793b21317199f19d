"""The herald: says in the store what this node serves and knows, so that others can tell why a job waits, and what its tasks ask of jobs
that are submitted by those who know no more than a name."""

from __future__ import annotations

from duetime.clock import Clock
from duetime.engine import notices
from duetime.engine.terms import Publisher
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import NodeId
from duetime.model.profile import Profile
from duetime.store import Store

TURN = 600 * SECOND
KEPT_FOR = 3 * TURN  # a notice outlives its node a little; whether the node lives is for its own row to say


class Herald:
    name = "herald"

    def __init__(self, store: Store, clock: Clock, node: NodeId, profile: Profile, terms: Publisher) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._profile = profile.to_bytes()
        self._terms = terms

    async def run_once(self) -> Micros:
        now = self._clock.now()
        await notices.post(self._store, notices.NODE, str(self._node), self._profile, now + KEPT_FOR)
        await self._terms.publish(self._store, now)
        return TURN


async def profiles(store: Store) -> dict[int, Profile]:
    """By node, of those that have said something: of a node that is not among them nothing is known."""
    said = await notices.read_all(store, notices.NODE)
    return {int(node): Profile.from_bytes(record.value) for node, record in said.items()}
