"""RateBuckets: what they let through, how many there are, and what one look costs."""

from __future__ import annotations

from time import process_time

from hypothesis import given
from hypothesis import strategies as st

import duetime as dt
from duetime.api.caller import Caller
from duetime.api.rate_limit import KeyRateLimit, RateBuckets, SharedBuckets, bucket_of
from duetime.model.api_key import Scope
from duetime.model.limit import Rate
from tests.api.keyed_api import Time


@given(st.integers(1, 50), st.integers(1, 60), st.lists(st.floats(0, 30), max_size=200))
def test_bucket_never_exceeds_its_rate_and_refills(count: int, seconds: int, steps: list[float]) -> None:
    time, rate = Time(), Rate(count, seconds * 1_000_000)
    buckets, passed = RateBuckets(time), list[int]()
    for step in steps:
        time.move(step)
        if not buckets.spend("a", rate):
            passed.append(time.now)
    for first, last in zip(passed, passed[2 * count :], strict=False):
        assert last - first >= rate.period - count, "a full bucket and one refill is all a period can give"
    time.move(seconds)
    assert [buckets.spend("a", rate) for _ in range(count)] == [0] * count
    assert buckets.spend("a", rate) > 0


def test_bucket_wait_is_exact() -> None:
    time, rate = Time(), Rate(2, 10_000_000)
    buckets = RateBuckets(time)
    assert (buckets.spend("a", rate), buckets.spend("a", rate)) == (0, 0)
    wait = buckets.spend("a", rate)
    assert wait == buckets.wait("a", rate) == 5_000_000
    time.now += wait - 1
    assert buckets.spend("a", rate) == 1
    time.now += 1
    assert buckets.spend("a", rate) == 0


def test_buckets_are_bounded_and_full_ones_are_forgotten_first() -> None:
    time, rate = Time(), Rate(1, 1_000_000)
    buckets = RateBuckets(time, limit=10)
    for number in range(10):
        buckets.spend(str(number), rate)
    time.move(2)
    buckets.spend("new", rate)
    assert len(buckets) == 1
    for number in range(1_000):
        buckets.spend(str(number), rate)
        assert len(buckets) <= 10


def test_addresses_of_one_network_share_a_bucket() -> None:
    assert bucket_of("2001:db8::1") == bucket_of("2001:db8::ffff:1") != bucket_of("2001:db8:0:1::1")
    assert bucket_of("::ffff:192.0.2.1") == bucket_of("192.0.2.1") != bucket_of("192.0.2.2")
    assert bucket_of("fe80::1%eth0") == bucket_of("fe80::2%eth1")
    assert bucket_of(None) == bucket_of("") == bucket_of("no address")


async def test_rate_limit_check_is_cheap() -> None:
    """Aimed at 5 microseconds: only what is hopeless fails."""
    app, times = dt.App("memory://"), list[float]()
    await app.open()
    rates = KeyRateLimit(Rate(1_000_000, 3_600_000_000), SharedBuckets(app, "rate"))
    caller = Caller("default", frozenset(Scope), "k3v9q2m7xw")
    for _ in range(20):
        began = process_time()
        for _ in range(2_000):
            await rates.spend(caller)
        times.append((process_time() - began) / 2_000)
    await app.close()
    assert min(times) < 1e-4
