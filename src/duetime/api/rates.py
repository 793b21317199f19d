"""How often may be asked: a bucket for each key, and one for each address from which wrong keys come. All in this process's memory."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

from duetime.api.auth import Caller
from duetime.api.problems import Refused
from duetime.clock import monotonic_micros
from duetime.model.instant import SECOND, Micros
from duetime.model.limit import Rate, show_rate

MOST_BUCKETS = 10_000
FAILURES = Rate(30, 60 * SECOND)  # wrong keys from one address
STRANGERS = Rate(200, SECOND)  # prefixes nobody has looked up before, from everywhere: each costs a read of the store
NETWORK_BITS = 64  # of an IPv6 address: the rest is its owner's to choose


class Buckets:
    """One bucket for each name, as long as it is not full again; no more than so many of them."""

    def __init__(self, now: Callable[[], Micros] | None = None, most: int = MOST_BUCKETS) -> None:
        self._now = now or monotonic_micros
        self._most = most
        self._spent: dict[str, Micros] = {}  # until when what was taken is paid for

    def spend(self, name: str, rate: Rate) -> Micros:
        """Take one: 0 when there was one to take, else how long until there is."""
        now = self._now()
        spent = self._spent.get(name)
        if spent is None:
            if len(self._spent) >= self._most:
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
        """How long until there is one to take; nothing is taken."""
        now = self._now()
        return max(0, self._spent.get(name, now) + rate.interval - now - rate.period)

    def _forget(self, now: Micros) -> None:
        """Those that are full again say nothing; if that does not help, the oldest half goes."""
        self._spent = {name: spent for name, spent in self._spent.items() if spent > now}
        if len(self._spent) >= self._most:
            self._spent = dict(list(self._spent.items())[len(self._spent) // 2 :])

    def __len__(self) -> int:
        return len(self._spent)


class KeyRates:
    """Each key at its own rate, or at the service's."""

    def __init__(self, usual: Rate, buckets: Buckets | None = None) -> None:
        self._usual = usual
        self._buckets = buckets or Buckets()

    def spend(self, caller: Caller) -> None:
        rate = caller.rate or self._usual
        wait = self._buckets.spend(caller.key_prefix or caller.tenant, rate)
        if wait:
            raise too_many(f"this key may ask {show_rate(rate)}: slow down, or ask for a key with a higher rate", wait)


def too_many(detail: str, wait: Micros) -> Refused:
    return Refused(429, "rate_limited", detail, None, {"Retry-After": str(-(-wait // SECOND))})


def bucket_of(address: str | None) -> str:
    """All addresses of one owner are one."""
    try:
        parsed = ip_address((address or "").partition("%")[0])
    except ValueError:
        return address or "unix"
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return f"{IPv6Address(int(parsed) >> 128 - NETWORK_BITS << 128 - NETWORK_BITS)}/{NETWORK_BITS}"
    return str(parsed)
