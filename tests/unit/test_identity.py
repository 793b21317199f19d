"""Which differences between a store and its stamp mean that it is a copy."""

from __future__ import annotations

from duetime.model.identity import MAX_LAG, MAX_SILENCE, Stamp, StoreIdentity, why_not_adopted

NOW = 1_700_000_000_000_000
STAMP = Stamp("cluster/1", "timeline 1", NOW)
SAME = StoreIdentity("cluster/1", "timeline 1")


def test_same_store_is_adopted() -> None:
    assert why_not_adopted(STAMP, SAME, NOW, NOW + 30 * MAX_SILENCE) is None


def test_other_data_is_a_copy() -> None:
    reason = why_not_adopted(STAMP, StoreIdentity("cluster/2", "timeline 1"), NOW, NOW)
    assert reason is not None
    assert "cluster/1" in reason
    assert "cluster/2" in reason


def test_failover_while_nodes_live_is_no_copy() -> None:
    other = StoreIdentity("cluster/1", "timeline 2")
    assert why_not_adopted(STAMP, other, NOW, NOW + MAX_SILENCE) is None


def test_server_recovered_while_no_node_lived_is_refused() -> None:
    other = StoreIdentity("cluster/1", "timeline 2")
    reason = why_not_adopted(STAMP, other, NOW, NOW + MAX_SILENCE + 1)
    assert reason is not None
    assert "recovered" in reason


def test_rows_older_than_their_last_use_are_refused() -> None:
    used = StoreIdentity("cluster/1", "timeline 1", NOW + MAX_LAG + 1)
    assert why_not_adopted(STAMP, used, NOW, NOW) is not None
    assert why_not_adopted(STAMP, used, NOW + 1, NOW) is None


def test_fence_holds_whatever_the_identity() -> None:
    fenced = Stamp("cluster/1", "timeline 1", NOW, "the store was restored")
    assert why_not_adopted(fenced, SAME, NOW, NOW) == "the store was restored"


def test_long_silence_is_refused_only_where_it_is_asked_for() -> None:
    asked = StoreIdentity("cluster/1", "timeline 1", max_silence=1_000_000)
    assert why_not_adopted(STAMP, asked, NOW, NOW + 1_000_000) is None
    reason = why_not_adopted(STAMP, asked, NOW, NOW + 1_000_001)
    assert reason is not None
    assert "max_silence (1s)" in reason
