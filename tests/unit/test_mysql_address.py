"""The URL of MariaDB and MySQL."""

from __future__ import annotations

import pytest

from duetime.errors import ConfigError
from duetime.stores import from_url

pytest.importorskip("asyncmy")

from duetime.stores.mysql.address import parse


def test_url_names_the_servers_in_order() -> None:
    address = parse("mysql://me:s%40cret@a.example.org,b.example.org:3307/jobs")
    assert address.hosts == (("a.example.org", 3306), ("b.example.org", 3307))
    assert (address.user, address.password, address.database) == ("me", "s@cret", "jobs")
    assert address.ssl is None


def test_password_is_never_shown() -> None:
    address = parse("mysql://me:s3cret@db.example.org/jobs?ssl=true")
    assert address.ssl is not None
    assert "s3cret" not in repr(address)
    assert "s3cret" not in repr(from_url("mariadb://me:s3cret@db.example.org/jobs"))


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://me@db.example.org", "names no database"),
        ("mysql://me@db.example.org/", "names no database"),
        ("mysql://me@db.example.org/jobs?sslmode=on", "unknown option 'sslmode'"),
        ("mysql://me@db.example.org/jobs?ssl=maybe", "ssl=true or ssl=false"),
        ("mysql://me@db.example.org/jobs?ssl_ca=/missing.pem", "cannot be read"),
        ("mysql://me:s3cret@db.example.org:port/jobs", "percent-encode"),
    ],
)
def test_unusable_url_is_refused_without_the_password(url: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says) as refused:
        from_url(url)
    assert "s3cret" not in str(refused.value)
