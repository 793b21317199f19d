"""Rate limits: a bucket for each key, and one for each address that sends wrong keys. In the memory of this
process."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

from duetime.api.caller import Caller
from duetime.api.problems import ApiProblem
from duetime.clock import monotonic_micros
from duetime.model.instant import SECOND, Micros
from duetime.model.limit import Rate, show_rate

MAX_BUCKETS = 10_000
FAILURE_RATE = Rate(30, 60 * SECOND)  # wrong keys from one address
LOOKUP_RATE = Rate(200, SECOND)  # unknown prefixes from all addresses: each costs a read of the store
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


class Unlimited:
    """Local mode."""

    def spend(self, caller: Caller) -> None:
        return None


class KeyRateLimit:
    """Each key at its own rate, or at the rate of the service."""

    def __init__(self, default: Rate, buckets: RateBuckets | None = None) -> None:
        self._default = default
        self._buckets = buckets or RateBuckets()

    def spend(self, caller: Caller) -> None:
        rate = caller.rate or self._default
        wait = self._buckets.spend(caller.key_prefix or caller.tenant, rate)
        if wait:
            raise too_many(
                f"the limit of this key is {show_rate(rate)}: slow down, or use a key with a higher rate",
                wait,
            )


def too_many(detail: str, wait: Micros) -> ApiProblem:
    return ApiProblem(429, "rate_limited", detail, None, {"Retry-After": str(-(-wait // SECOND))})


def bucket_of(address: str | None) -> str:
    """One bucket for all addresses of an owner."""
    try:
        parsed = ip_address((address or "").partition("%")[0])
    except ValueError:
        return address or "unix"
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return f"{IPv6Address(int(parsed) >> 128 - NETWORK_BITS << 128 - NETWORK_BITS)}/{NETWORK_BITS}"
    return str(parsed)
