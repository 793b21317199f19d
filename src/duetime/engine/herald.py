"""The herald: says in the store what this node serves and knows, so that others can tell why a job waits."""

from __future__ import annotations

from duetime.clock import Clock
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import NodeId
from duetime.model.profile import Profile
from duetime.store import Store

KIND = "node"
EVERYBODY = ""  # nodes work for all tenants: their records belong to none
TURN = 600 * SECOND
KEPT_FOR = 3 * TURN  # a record outlives its node a little; whether the node lives is for its own row to say
PAGE = 1_000


class Herald:
    name = "herald"

    def __init__(self, store: Store, clock: Clock, node: NodeId, profile: Profile) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._profile = profile.to_bytes()

    async def run_once(self) -> Micros:
        await self._store.put_record(KIND, EVERYBODY, str(self._node), self._profile, expires_at=self._clock.now() + KEPT_FOR)
        return TURN


async def profiles(store: Store) -> dict[int, Profile]:
    """By node, of those that have said something: of a node that is not among them nothing is known."""
    found: dict[int, Profile] = {}
    after: tuple[str, str] | None = None
    while page := await store.list_records(KIND, EVERYBODY, PAGE, after):
        found |= {int(record.key): Profile.from_bytes(record.value) for record in page}
        after = page[-1].tenant, page[-1].key
    return found
