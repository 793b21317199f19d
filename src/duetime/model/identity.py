"""Whether a store is the one that nodes worked on, or a copy of it: a restored backup, a copied file. Both
hold the same rows, so the difference must come from outside of the rows."""

from __future__ import annotations

from dataclasses import dataclass

from duetime.model import duration
from duetime.model.instant import SECOND, Micros, to_iso

MAX_LAG = 10 * SECOND  # a sign of life outside may be newer than the last one inside by so much
# A server may change (failover) while nodes work. If it changed while none did, it may be a recovered one.
MAX_SILENCE = 600 * SECOND


@dataclass(frozen=True, slots=True)
class StoreIdentity:
    """Where the rows are, as the database says, not the rows."""

    data: str = ""  # a copy has another one; failover, restart and a renamed file leave it
    server: str = ""  # also another one after a failover
    seen_at: Micros | None = None  # the last sign outside of the rows that they were used
    max_silence: Micros | None = None  # rows whose last node lived longer ago are taken for a copy
    # Where `replicas` is a capability: how far the server is, a replica with what it has taken over
    log: int = 0  # a place in the server's log; it only increases
    log_at: Micros = 0  # the store's clock; on a replica that of the last commit it has, 0 if there was none


@dataclass(frozen=True, slots=True)
class Stamp:
    """The identity that the store had when it was adopted, stored among its rows."""

    data: str
    server: str
    at: Micros  # when it was written
    fence: str | None = None  # why the store must be adopted, whatever its identity


def why_not_adopted(stamp: Stamp, found: StoreIdentity, alive_at: Micros, now: Micros) -> str | None:
    """Why nothing may run on this store; None if it is the one that was adopted. `alive_at`: until when the
    rows show a living node, or when the stamp was written."""
    if stamp.fence is not None:
        return stamp.fence
    if stamp.data != found.data:
        return f"the store is a copy or was restored (it was {stamp.data}, and is {found.data})"
    if found.seen_at is not None and found.seen_at > alive_at + MAX_LAG:
        return (
            f"the store is older than its last use: its nodes lived until {to_iso(alive_at)}, and it was in "
            f"use or made at {to_iso(found.seen_at)}, so an earlier state was restored"
        )
    if found.max_silence is not None and now > alive_at + found.max_silence:
        return (
            f"no node has lived since {to_iso(alive_at)}, for longer than max_silence "
            f"({duration.show(found.max_silence)}), so an earlier state may have been restored"
        )
    if stamp.server != found.server and now > alive_at + MAX_SILENCE:
        return (
            f"the database server was recovered while no node ran (it was {stamp.server}, and is "
            f"{found.server})"
        )
    return None
