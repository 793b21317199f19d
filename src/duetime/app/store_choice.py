"""The store of a program: the URL in its code, or else the one that the settings name."""

from __future__ import annotations

import os
from functools import cache
from logging import getLogger

from duetime.config import hide_password
from duetime.config_sources import find_store
from duetime.errors import ConfigError

_logger = getLogger("duetime")


def chosen_store() -> str:
    """The URL for a program that names no store."""
    return find_store(os.environ).url


def warn_of_another(url_in_code: str | None) -> None:
    """If the settings name another store than the code does: the code wins, because a test on memory must not
    reach the store of the environment."""
    if url_in_code is None:
        return
    try:
        named = find_store(os.environ)
    except ConfigError:  # it concerns only programs that use the settings
        return
    if named.source is not None and named.url != url_in_code:
        _warn_once(hide_password(url_in_code), hide_password(named.url), named.source)


@cache
def _warn_once(used: str, other: str, source: str) -> None:
    _logger.warning(
        "the store is %s, which the code of this program names, not %s (from %s): "
        "write dt.App() to use that one",
        used,
        other,
        source,
    )
