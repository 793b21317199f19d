"""Services that hold leases instead of the store, found by the scheme of the URL. Imported only when asked
for, because it needs its extra: `pip install 'duetime[etcd]'`."""

from __future__ import annotations

from urllib.parse import urlsplit

from duetime.clock import Clock
from duetime.errors import ConfigError
from duetime.lease import LeaseTable

SCHEMES = ("etcd", "etcds")


def leases_for(url: str, clock: Clock) -> LeaseTable:
    """The table at this URL, not connected yet."""
    scheme = urlsplit(url).scheme.lower()
    if scheme not in SCHEMES:
        raise ConfigError(
            f"leases: {scheme or url!r} cannot hold leases: use etcd://HOST:2379 or, with TLS, "
            "etcds://HOST:2379; without this setting the store holds them (docs/leases.md)"
        )
    try:
        from duetime.leases.etcd import EtcdLeases

        return EtcdLeases(url, clock)
    except ModuleNotFoundError as missing:
        if missing.name is not None and missing.name.startswith("duetime"):
            raise
        raise ConfigError(
            f"leases: {scheme}:// needs the package {missing.name}: pip install 'duetime[etcd]'"
        ) from None
