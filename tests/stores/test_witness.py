"""What the missing sign of life of another node proves."""

from __future__ import annotations

import pytest

from duetime.model.instant import SECOND
from duetime.model.lease import NodeId
from duetime.stores import witness
from duetime.stores.witness import Witness


def test_missing_sign_proves_nothing_without_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, now = Witness(), 0
    monkeypatch.setattr(witness, "monotonic_micros", lambda: now)
    steps = [
        # seconds later, the own sign, whether that of the other is there, whether the other is gone
        (0, "1", False, False),  # it was never there
        (10, "1", False, False),
        (0, "1", True, False),
        (0, "1", False, False),  # its process may be about to connect again
        (3, "1", False, True),
        (3, "", False, False),  # another server answers
        (0, "2", False, False),  # this process has another connection
        (10, "2", False, False),
        (0, "2", True, False),
        (0, "2", False, False),
        (1, "2", True, False),  # it connected again
        (5, "2", False, False),
        (3, "2", False, True),
    ]
    for seconds, own, is_there, is_gone in steps:
        now += seconds * SECOND
        assert seen.is_gone(NodeId(2), own, is_there) is is_gone, (seconds, own)
