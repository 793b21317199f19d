"""A busy node claims less: nothing above the load its operator set, a part while its event loop lags."""

from __future__ import annotations

import pytest

from duetime.engine.fetch.claimer import MAX_LAG, Backpressure
from duetime.engine.node.options import NodeOptions
from duetime.errors import ConfigError
from duetime.model.instant import Micros


@pytest.mark.parametrize(
    ("room", "lag", "load", "max_load", "allowed"),
    [
        (100, 0, 50.0, None, 100),
        (100, 0, 0.9, 0.8, 0),
        (100, 0, 0.8, 0.8, 100),
        (100, MAX_LAG, 0.0, None, 100),
        (100, 2 * MAX_LAG, 0.0, None, 50),
        (100, 1_000 * MAX_LAG, 0.0, None, 1),
        (0, 2 * MAX_LAG, 0.0, None, 0),
        (-3, 0, 0.0, None, 0),
    ],
)
def test_how_much_room_is_used(
    room: int, lag: Micros, load: float, max_load: float | None, allowed: int
) -> None:
    assert Backpressure(lambda: lag, lambda: load, max_load).allow(room) == allowed


def test_load_is_not_read_without_max_load() -> None:
    def refuse() -> float:
        raise AssertionError("read")

    assert Backpressure(lambda: 0, refuse, None).allow(1) == 1


@pytest.mark.parametrize("load", [0, -1, 101])
def test_a_load_that_makes_no_sense_is_refused(load: float) -> None:
    with pytest.raises(ConfigError, match="max_load"):
        NodeOptions(name="n", version="1", max_load=load)
