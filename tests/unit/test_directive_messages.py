"""A directive of an isolated task reads like that of any other task."""

from __future__ import annotations

from datetime import timedelta

import pytest

from duetime.invokers.protocol import directive_message, read_directive
from duetime.model.duration import Duration
from duetime.model.settle import RetryAfter, Snooze


@pytest.mark.parametrize("kind", [Snooze, RetryAfter])
@pytest.mark.parametrize("delay", ["90s", timedelta(minutes=5)])
def test_delay_without_a_reason_has_the_same_text(kind: type[Snooze | RetryAfter], delay: Duration) -> None:
    raised = kind(delay)
    assert str(read_directive(directive_message(raised))) == str(raised)
    assert ":" not in str(raised)
