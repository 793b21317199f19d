"""Tools for testing an app and for testing a store. Importing this package needs no test tools; `conformance`
does.

The names of the test kit are loaded on first use: the pytest plugin is in this package and must not slow down
unrelated tests.
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
