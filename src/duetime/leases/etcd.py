"""Leases in etcd. Every node has one lease of etcd's own, to which its keys are attached: when the node no
longer renews it, etcd deletes them all.

    PREFIX/nodes/ID       a living node; the value is its roles
    PREFIX/leases/NAME    a lease that is held; the value is the node. A transaction creates it only if it is
                          missing. Its create revision is the token, which rises with each holder"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from duetime.clock import Clock
from duetime.errors import LeasesUnavailable
from duetime.lease import Member
from duetime.leases.etcd_address import EtcdAddress
from duetime.leases.etcd_client import EtcdClient, EtcdLeaseEnded, from_text, to_text
from duetime.model.ids import SEGMENTS
from duetime.model.instant import SECOND, Micros
from duetime.model.lease import LEADER, Lease, NodeId, segment_lease

MAX_OPERATIONS = 100  # of one transaction; etcd allows 128
# A node stops using its leases when a fifth of their time is left: clocks run at different speeds
UNUSED_PART = 5
CLOSE_TIMEOUT = 2.0  # seconds
NOTHING: frozenset[str] = frozenset()
Json = Mapping[str, Any]


class EtcdLeases:
    """One etcd cluster, for the node of this process and for readers."""

    def __init__(self, url: str, clock: Clock) -> None:
        address = EtcdAddress.parse(url)
        self._client = EtcdClient(address)
        self._prefix = address.prefix
        self._clock = clock

    def holder(self, node: NodeId, roles: Sequence[str], ttl: Micros) -> EtcdLeaseHolder:
        return EtcdLeaseHolder(self._client, self._prefix, self._clock, Member(node, tuple(roles)), ttl)

    async def leases(self, now: Micros) -> list[Lease]:
        found = await _read(self._client, f"{self._prefix}/leases/")
        ids = sorted({row["lease"] for row in found.values()})
        ends = dict(zip(ids, await asyncio.gather(*map(self._left, ids)), strict=True))
        listed = {name: Lease(name, None, 0, None) for name in (LEADER, *map(segment_lease, range(SEGMENTS)))}
        for name, row in found.items():
            holder, token = NodeId(int(to_text(row["value"]))), int(row["create_revision"])
            listed[name] = Lease(name, holder, token, now + ends[row["lease"]])
        return [lease for _, lease in sorted(listed.items())]

    async def close(self) -> None:
        await self._client.close()

    async def _left(self, lease: str) -> Micros:
        return max(0, _ttl(await self._client.call("lease/timetolive", {"ID": lease})))


class EtcdLeaseHolder:
    def __init__(self, client: EtcdClient, prefix: str, clock: Clock, me: Member, ttl: Micros) -> None:
        self._client = client
        self._prefix = prefix
        self._clock = clock
        self._me = me
        self._ttl = -(-ttl // SECOND)  # etcd counts in whole seconds
        self._forget()

    def _forget(self) -> None:
        """This node has no lease in etcd: not yet, or it has ended."""
        self._lease: str | None = None  # its id
        self._held = NOTHING
        self._mine: set[str] = set()  # keys that may be attached to it, also after a reply was lost
        self._trusted_until: Micros = 0

    @property
    def held(self) -> frozenset[str]:
        return self._held if self._clock.monotonic() < self._trusted_until else NOTHING

    async def renew(self) -> list[Member]:
        sent_at = self._clock.monotonic()  # etcd counts from a later instant
        ttl = 0 if self._lease is None else await self._keep_alive(self._lease)
        if ttl <= 0:
            self._forget()
            ttl = await self._grant()
        rows = await _read(self._client, f"{self._prefix}/nodes/")
        members = {node: tuple(to_text(row["value"]).split(",")) for node, row in rows.items()}
        me = str(self._me.node)
        if me not in members or rows[me].get("lease") != self._lease:
            members[me] = self._me.roles
            await self._call("kv/put", self._pair(f"nodes/{me}", ",".join(self._me.roles)))
        self._trusted_until = sent_at + ttl - ttl // UNUSED_PART
        return [Member(NodeId(int(node)), roles) for node, roles in members.items()]

    async def hold(self, names: Sequence[str]) -> None:
        self._held = self._held & frozenset(names)
        if self._lease is None:
            return
        dropped = self._mine.difference(names)
        self._mine.update(names)
        operations = [self._drop(name) for name in dropped] + [self._take(name) for name in names]
        replies: list[Json] = []
        for start in range(0, len(operations), MAX_OPERATIONS):
            some = {"success": operations[start : start + MAX_OPERATIONS]}
            replies += (await self._call("kv/txn", some))["responses"]
        taken = zip(names, replies[len(dropped) :], strict=True)
        self._held = frozenset(name for name, reply in taken if self._is_mine(reply["response_txn"]))
        self._mine = set(self._held)

    async def close(self) -> None:
        lease = self._lease
        self._forget()
        if lease is not None:
            with suppress(LeasesUnavailable, EtcdLeaseEnded, TimeoutError):  # then it ends by itself
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    await self._client.call("lease/revoke", {"ID": lease})

    async def _keep_alive(self, lease: str) -> Micros:
        """How long it lasts from now on; 0: it has ended."""
        return _ttl((await self._call("lease/keepalive", {"ID": lease})).get("result", {}))

    async def _grant(self) -> Micros:
        reply = await self._call("lease/grant", {"TTL": self._ttl})
        self._lease = reply["ID"]
        return _ttl(reply)  # at least 2 s

    async def _call(self, path: str, body: Json) -> Json:
        try:
            return await self._client.call(path, body)
        except EtcdLeaseEnded:
            self._forget()
            raise LeasesUnavailable("etcd has ended the lease of this node: it takes another") from None

    # -- operations of a transaction
    def _take(self, name: str) -> Json:
        """Create the key if it is missing; otherwise read it."""
        pair = self._pair(f"leases/{name}", str(self._me.node))
        missing = {"key": pair["key"], "target": "CREATE", "create_revision": "0"}
        return _either(missing, {"request_put": pair}, {"request_range": {"key": pair["key"]}})

    def _drop(self, name: str) -> Json:
        key = self._pair(f"leases/{name}")["key"]
        mine = {"key": key, "target": "LEASE", "lease": self._lease}
        return _either(mine, {"request_delete_range": {"key": key}})

    def _pair(self, name: str, value: str = "") -> Json:
        return {"key": from_text(f"{self._prefix}/{name}"), "value": from_text(value), "lease": self._lease}

    def _is_mine(self, taken: Json) -> bool:
        if taken.get("succeeded"):
            return True
        rows = taken["responses"][0]["response_range"].get("kvs", [])
        return any(row.get("lease") == self._lease for row in rows)


async def _read(client: EtcdClient, folder: str) -> dict[str, Json]:
    """The keys below this folder, by name; those of other programs, without a lease, are left out. The read
    is linearizable."""
    end = folder[:-1] + chr(ord("/") + 1)
    reply = await client.call("kv/range", {"key": from_text(folder), "range_end": from_text(end)})
    return {to_text(row["key"]).removeprefix(folder): row for row in reply.get("kvs", []) if "lease" in row}


def _either(condition: Json, then: Json, otherwise: Json | None = None) -> Json:
    """A transaction inside a transaction: each lease is taken or not, whatever becomes of the others."""
    branches = {"success": [then], "failure": [] if otherwise is None else [otherwise]}
    return {"request_txn": {"compare": [{"result": "EQUAL", **condition}], **branches}}


def _ttl(reply: Json) -> Micros:
    return int(reply.get("TTL", 0)) * SECOND
