"""Momentum: posts published to LinkedIn on time. An application on Duetime's public interface."""

from __future__ import annotations

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    """Importing Duetime takes time, and the local LinkedIn, which starts for every demo, does not need it."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from duetime import __version__

    return __version__
