"""The setting `leases` on the command line."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Duetime, duetime, folder, past
from tests.cli.fleet import Past
from tests.servers.process import free_port

__all__ = ["duetime", "folder", "past"]


def leases_check(duetime: Duetime) -> dict[str, str]:
    checks: list[dict[str, str]] = duetime("doctor", "--json").json
    return next(check for check in checks if check["name"] == "leases")


def test_doctor_warns_when_etcd_does_not_answer(
    duetime: Duetime, past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DUETIME_LEASES", f"etcd://127.0.0.1:{free_port()}")
    check = leases_check(duetime)
    assert (check["level"], check["remedy"]) == (
        "warn",
        "check --leases, the network, and that etcd runs",
    )


def test_wrong_address_is_refused(duetime: Duetime) -> None:
    done = duetime("serve", "--leases", "zookeeper://host")
    assert done.status == 2
    assert "leases: 'zookeeper' cannot hold leases: use etcd://HOST:2379" in " ".join(done.err.split())
