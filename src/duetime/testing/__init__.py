"""For those who test with Duetime, and for those who write a store. Importing this needs no test tools; `conformance` does.

The names of the test kit are loaded when first used: the pytest plugin lives here, and must not slow down tests of other things.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from duetime.testing.kit import (
        Stuck,
        Submitted,
        VirtualTime,
        assert_not_submitted,
        assert_submitted,
        inline,
        recording,
        run,
        submitted,
        virtual,
    )

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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from duetime.testing import kit

    return getattr(kit, name)
