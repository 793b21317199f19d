"""The test kit: virtual time for a whole app, jobs that run where they are submitted, assertions, and accidents on demand."""

from __future__ import annotations

from duetime.testing.kit.assertions import assert_not_submitted, assert_submitted
from duetime.testing.kit.inline import inline, recording
from duetime.testing.kit.submitted import Submitted, submitted
from duetime.testing.kit.takeover import Stuck
from duetime.testing.kit.virtual import VirtualTime, run, virtual

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
