"""Rate limits: a bucket for each key, in the store, and one for each address that sends wrong keys, in the
memory of this process."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_address
from typing import TypeVar

from duetime.api.caller import Caller, Identity
from duetime.api.problems import ApiProblem
from duetime.app.services import Services
from duetime.clock import monotonic_micros
from duetime.model.instant import SECOND, Micros
from duetime.model.limit import Rate, show_rate
from duetime.model.url import Network

MAX_BUCKETS = 10_000
FAILURE_RATE = Rate(30, 60 * SECOND)  # wrong keys from one address
LOOKUP_RATE = Rate(200, SECOND)  # unknown prefixes from all addresses: each costs a read of the store
SHARES = 50  # a process takes this part of a bucket at a time
MAX_TRIES = 20  # another process may take tokens at the same time
Value = TypeVar("Value")
NETWORK_BITS = 64  # of an IPv6 address: the owner of a network chooses the rest


class RateBuckets:
    """One bucket for each name until it is full again, with an upper bound on their number."""

    def __init__(self, now: Callable[[], Micros] | None = None, limit: int = MAX_BUCKETS) -> None:
        self._now = now or monotonic_micros
        self._limit = limit
        self._spent: dict[str, Micros] = {}  # until when the tokens taken so far are paid for

    def spend(self, name: str, rate: Rate) -> Micros:
        """Take one token: 0 on success, else the time until there is one."""
        now = self._now()
        spent = self._spent.get(name)
        if spent is None:
            if len(self._spent) >= self._limit:
                self._forget(now)
            spent = now
        elif spent < now:
            spent = now
        spent += rate.interval
        if spent > now + rate.period:
            return spent - now - rate.period
        self._spent[name] = spent
        return 0

    def wait(self, name: str, rate: Rate) -> Micros:
        """The time until there is a token. Takes none."""
        now = self._now()
        return max(0, self._spent.get(name, now) + rate.interval - now - rate.period)

    def _forget(self, now: Micros) -> None:
        """Drop full buckets; if that does not help, the older half."""
        self._spent = {name: spent for name, spent in self._spent.items() if spent > now}
        if len(self._spent) >= self._limit:
            self._spent = dict(list(self._spent.items())[len(self._spent) // 2 :])

    def __len__(self) -> int:
        return len(self._spent)


class WrongKeys:
    """Limits the rate of wrong keys from one address, in the memory of this process."""

    def __init__(self, proxies: tuple[Network, ...] = (), buckets: RateBuckets | None = None) -> None:
        self._proxies = proxies
        self._buckets = buckets or RateBuckets()

    def refuse_blocked(self, peer: str | None, headers: Mapping[str, str]) -> None:
        """Raises ApiProblem(429) while the address has sent too many, before a key is looked up. Not for keys
        that are known to be valid: strangers behind the same address must not lock them out."""
        self._refuse_for(self._buckets.wait(self._address(peer, headers), FAILURE_RATE))

    def count(self, peer: str | None, headers: Mapping[str, str]) -> None:
        """After a wrong key. Raises ApiProblem(429) if there were too many."""
        self._refuse_for(self._buckets.spend(self._address(peer, headers), FAILURE_RATE))

    def _address(self, peer: str | None, headers: Mapping[str, str]) -> str:
        return bucket_of(client_of(peer, headers.get("x-forwarded-for"), self._proxies))

    @staticmethod
    def _refuse_for(wait: Micros) -> None:
        if wait:
            raise too_many("too many wrong keys from this address: repeat the request later", wait)


class OpenCounts:
    """The requests of each caller that are open at the same time."""

    def __init__(self, exhausted: ApiProblem, max_per_key: int, max_per_process: int) -> None:
        self._exhausted = exhausted
        self.max_per_key, self.max_per_process = max_per_key, max_per_process
        self._open: Counter[Identity] = Counter()

    def enter(self, identity: Identity) -> None:
        if self._open[identity] >= self.max_per_key or self._open.total() >= self.max_per_process:
            raise self._exhausted.with_traceback(None)
        self._open[identity] += 1

    def leave(self, identity: Identity) -> None:
        self._open[identity] -= 1
        if not self._open[identity]:
            del self._open[identity]

    @contextmanager
    def held(self, identity: Identity) -> Iterator[None]:
        self.enter(identity)
        try:
            yield
        finally:
            self.leave(identity)


class Unlimited:
    """Local mode."""

    async def spend(self, caller: Caller) -> None:
        return None


class Share:
    """The tokens of a shared bucket that this process has taken and not spent yet."""

    __slots__ = ("left", "lock", "until")

    def __init__(self) -> None:
        self.left = 0
        self.until: Micros = 0  # on this machine's own clock
        self.lock = asyncio.Lock()

    def spend(self) -> bool:
        if self.left and monotonic_micros() < self.until:
            self.left -= 1
            return True
        return False


class SharedBuckets:
    """One bucket for each name for all processes together: a record in the store. A process takes several
    tokens at a time from a large bucket, so that most requests do not ask the store."""

    def __init__(self, app: Services, kind: str) -> None:
        self._app, self._kind = app, kind
        self._shares: dict[str, Share] = {}

    async def spend(self, name: str, rate: Rate) -> Micros:
        """Take one token: 0 on success, else the time until there is one."""
        share = self._shares.get(name)
        if share is None:
            share = Share()
            keep(self._shares, name, share, MAX_BUCKETS)
        if share.spend():
            return 0
        async with share.lock:  # one of the waiting requests takes tokens for all
            return 0 if share.spend() else await self._take(share, name, rate)

    async def _take(self, share: Share, name: str, rate: Rate) -> Micros:
        store = self._app.store
        for _ in range(MAX_TRIES):
            record, now = await store.get_record(self._kind, "", name), await self._app.now()
            spent = 0 if record is None else int(record.value)
            count = min(rate.allowed(spent, now), max(1, rate.count // SHARES))
            if not count:
                return max(1, rate.free_at(spent) - now)
            spent, version = rate.spend(spent, now, count), 0 if record is None else record.version
            value = str(spent).encode()
            if await store.put_record(self._kind, "", name, value, version, spent + rate.period):
                share.left, share.until = count - 1, monotonic_micros() + rate.period
                return 0
        return rate.interval


class KeyRateLimit:
    """Each key at its own rate, or at the rate of the service, over all processes."""

    def __init__(self, default: Rate, buckets: SharedBuckets) -> None:
        self._default = default
        self._buckets = buckets

    async def spend(self, caller: Caller) -> None:
        rate = caller.rate or self._default
        wait = await self._buckets.spend(caller.key_prefix or caller.tenant, rate)
        if wait:
            raise too_many(
                f"the limit of this key is {show_rate(rate)}: slow down, or use a key with a higher rate",
                wait,
            )


def too_many(detail: str, wait: Micros) -> ApiProblem:
    return ApiProblem(429, "rate_limited", detail, None, {"Retry-After": str(-(-wait // SECOND))})


def keep(kept: dict[str, Value], name: str, value: Value, limit: int) -> None:
    """Add it as the newest; drop the oldest if there are too many."""
    kept.pop(name, None)
    kept[name] = value
    if len(kept) > limit:
        del kept[next(iter(kept))]


def bucket_of(address: str | None) -> str:
    """One bucket for all addresses of an owner, and one for all that are not addresses."""
    try:
        parsed = ip_address((address or "").partition("%")[0])
    except ValueError:
        return "other"
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return f"{IPv6Address(int(parsed) >> 128 - NETWORK_BITS << 128 - NETWORK_BITS)}/{NETWORK_BITS}"
    return str(parsed)


def among(address: str | None, proxies: tuple[Network, ...]) -> bool:
    if not proxies:
        return False
    try:
        parsed = ip_address(address or "")
    except ValueError:
        return False
    return any(parsed in network for network in proxies)


def client_of(peer: str | None, forwarded: str | None, proxies: tuple[Network, ...]) -> str | None:
    """The client behind the operator's proxies: the last address that is not one of them. Addresses before it
    can be forged."""
    hops = [hop.strip() for hop in (forwarded or "").split(",")][-16:]
    client = peer
    while hops and among(client, proxies):
        client = _without_port(hops.pop()) or client
    return client


def _without_port(hop: str) -> str:
    """Some proxies write 192.0.2.1:4711 or [2001:db8::1]:4711. Every connection has another port."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop
