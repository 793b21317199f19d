"""Replies of the server that are errors, as errors of the contract."""

from __future__ import annotations

from duetime.errors import ConfigError, DuetimeError, StoreError, StoreFull, StoreUnavailable

FULL = frozenset({"OOM"})
ACCESS_DENIED = frozenset({"NOAUTH", "WRONGPASS", "NOPERM"})
# Refused before anything was done: a server that starts, a replica, a cluster without a master for the slot
UNAVAILABLE = frozenset(
    {
        "BUSY",
        "CLUSTERDOWN",
        "LOADING",
        "MASTERDOWN",
        "MISCONF",
        "NOREPLICAS",
        "READONLY",
        "TRYAGAIN",
        "UNBLOCKED",
    }
)


def translate(text: str, place: str) -> DuetimeError:
    """The error for the caller: it names the server, never the password."""
    server, word = f"Redis at {place}", text.partition(" ")[0]
    if word in FULL or (word == "MISCONF" and "No space left" in text):
        return StoreFull(
            f"{server} has no room left ({text}): raise maxmemory or free disk space, or shorten the "
            "retention, then repeat"
        )
    if word in ACCESS_DENIED:
        return ConfigError(f"{server} denies access ({text}): check user and password of the URL and its ACL")
    if word in UNAVAILABLE:
        return StoreUnavailable(f"{server} cannot be used now ({text}): it is safe to repeat")
    return StoreError(f"{server} refused a command ({text})")
