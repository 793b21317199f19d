"""The log of a store outage."""

from __future__ import annotations

import logging

import pytest

from duetime.errors import StoreUnavailable
from duetime.model.events import Event, NodeJoined, TurnFailed, TurnRecovered
from duetime.model.lease import NodeId
from duetime.observers.log import FAILURES_PER_RECORD, EventLogger


def failed(part: str) -> Event:
    return TurnFailed(part, StoreUnavailable("the store does not answer"), 50_000, expected=True)


@pytest.fixture
def logger(caplog: pytest.LogCaptureFixture) -> EventLogger:
    caplog.set_level(logging.INFO, "duetime")
    return EventLogger()


def test_outage_is_logged_once_and_summed_up_at_its_end(
    logger: EventLogger, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(20):
        for part in ("claimer", "planner", "settler", "reaper"):
            logger(failed(part))
    assert [record.message for record in caplog.records] == [
        "claimer: the store does not answer; this node tries again until it succeeds"
    ]
    for part in ("claimer", "planner", "settler"):
        logger(TurnRecovered(part))
    assert len(caplog.records) == 1, "the reaper still fails"
    logger(TurnRecovered("reaper"))
    logger(TurnRecovered("reaper"))
    assert [record.message for record in caplog.records[1:]] == [
        "the store works again, after 80 failed tries"
    ]
    logger(failed("planner"))
    assert len(caplog.records) == 3, "another outage"


def test_long_outage_is_logged_again_now_and_then(
    logger: EventLogger, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(10 * FAILURES_PER_RECORD):
        logger(failed("claimer"))
    assert len(caplog.records) == 1 + 10


def test_outage_ends_when_the_node_joins_again(logger: EventLogger, caplog: pytest.LogCaptureFixture) -> None:
    logger(failed("claimer"))
    logger(NodeJoined(NodeId(2), ("worker",)))
    assert [record.message for record in caplog.records[1:]] == [
        "the store works again, after 1 failed tries",
        "node 2 joined as worker",
    ]
