"""The test kit: virtual time for a whole app, inline jobs, assertions and planned faults."""

from __future__ import annotations

from duetime.testing.kit.assertions import assert_not_submitted, assert_submitted
from duetime.testing.kit.inline import inline, recording
from duetime.testing.kit.submitted import Submitted, submitted
from duetime.testing.kit.virtual import VirtualTime, run, virtual
from duetime.testing.kit.virtual_clock import Stuck

__all__ = [
    "Stuck",
    "Submitted",
    "VirtualTime",
    "assert_not_submitted",
    "assert_submitted",
    "inline",
    "recording",
    "run",
    "submitted",
    "virtual",
]
