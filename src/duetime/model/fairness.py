"""Fair shares: how the slots of a node are divided among the tenants whose jobs it runs.

A tenant may hold at most `HOLD_PER_FREE` times as many slots as are free. One tenant alone leaves a fifth of
the slots free, two a ninth, and so on: a flood of one tenant, short jobs or hanging ones, always leaves slots
for the next tenant. Tenants take turns, the one served longest ago first. A node shares as soon as it knows
of two tenants: by their jobs, or by keys that may submit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

HOLD_PER_FREE = 4


def share(held: int, free: int) -> int:
    """How many more slots a tenant may take that holds so many, while so many are free. A tenant without any
    may have one, if there is one."""
    more = (HOLD_PER_FREE * free - held) // (HOLD_PER_FREE + 1)
    return max(more, min(free, 1) if held == 0 else 0)


def fair_turn(
    tenants: Iterable[str], held: Mapping[str, int], served: Mapping[str, int], free: int, room: int
) -> tuple[dict[str, int], int]:
    """For one claim: the place in the order of each tenant that may take more, and how many jobs the claim
    may take in all so that none of them exceeds its share. `served`: the number of the last claim that
    brought jobs of a tenant."""
    shares = {tenant: share(held.get(tenant, 0), free) for tenant in tenants}
    able = sorted((tenant for tenant, more in shares.items() if more > 0), key=lambda one: served.get(one, 0))
    return {tenant: place for place, tenant in enumerate(able)}, min(
        [room, *(shares[tenant] for tenant in able)]
    )
