"""`--read-store`, and what `duetime stats` says about the replica."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from duetime.cli.commands.stats import _show_stats
from duetime.model.views import LiveCounts, ReadStoreView, Stats
from tests.cli.conftest import Duetime


def test_serve_refuses_a_replica_of_a_store_that_has_none(duetime: Duetime) -> None:
    done = duetime("serve", "--read-store", "postgresql://replica.example.org/duetime")
    assert (done.status, "read_store: only stores in PostgreSQL" in done.err) == (2, True), done.err


@pytest.mark.parametrize(
    ("replica", "text"),
    [
        (ReadStoreView(lag_ms=1_250.0), "read     from the read replica, 1.2 s behind"),
        (ReadStoreView(remark="the read replica is away"), "read     the read replica is away"),
    ],
)
def test_stats_show_the_replica(
    replica: ReadStoreView, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _show_stats(Stats(now=datetime.now(UTC), live=LiveCounts(), read_store=replica))
    assert text in capsys.readouterr().out.splitlines()


def test_stats_without_a_replica_do_not_mention_one(capsys: pytest.CaptureFixture[str]) -> None:
    _show_stats(Stats(now=datetime.now(UTC), live=LiveCounts()))
    assert "read " not in capsys.readouterr().out
