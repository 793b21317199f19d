"""What a job needs of a node, and what nodes publish about it."""

from __future__ import annotations

import pytest

from duetime.model.permissions import differences, missing_permission
from duetime.model.profile import NodeProfile
from duetime.model.target import HTTP, LISTED, HttpTarget, shown_name, stored_names


def http(url: str, **fields: object) -> HttpTarget:
    return HttpTarget.from_json({"type": "http", "url": url, **fields})


@pytest.mark.parametrize(
    ("url", "listed"),
    [
        ("https://agent.example/run", False),
        ("http://agent.example:8443/", False),
        ("http://8.8.8.8/", False),
        ("http://127.0.0.1:8080/", True),
        ("https://10.0.0.5/", True),
        ("https://[::1]/", True),
        ("http://localhost/", True),
        ("http://agent/", True),
        ("https://agent.example:9000/", True),
        ("http://169.254.169.254/latest", True),
    ],
)
def test_address_that_an_operator_must_list_is_a_target_of_its_own(url: str, listed: bool) -> None:
    assert http(url).name == (LISTED if listed else HTTP)
    assert shown_name(http(url).name) == HTTP


def test_callers_find_both_under_one_name() -> None:
    assert set(stored_names(HTTP)) == {HTTP, LISTED}
    assert set(stored_names("task")) == {"task"}


@pytest.mark.parametrize(
    ("url", "own", "missing"),
    [
        ("http://127.0.0.1:8080/", {"plain_http": ("yes",)}, "--allow 127.0.0.1"),
        ("https://127.0.0.1/", {"allow": ("127.0.0.0/8",)}, None),
        ("https://agent.example:9000/", {}, "--allow-ports 9000"),
        ("https://agent.example:9000/", {"allow_ports": ("9000",)}, None),
        ("http://agent.example/", {}, "--plain-http yes"),
        ("https://agent/", {"allow": ("agent",)}, None),
        ("https://agent.example/", {}, None),
    ],
)
def test_missing_permission_is_named_as_its_option(
    url: str, own: dict[str, tuple[str, ...]], missing: str | None
) -> None:
    target = http(url)
    assert missing_permission(own, target.name, target.to_spec()) == missing


def test_missing_secret_key_is_named() -> None:
    target = http("https://agent.example/", secret_headers={"X-Key": "x"})
    spec = target.sealed(lambda name, text: f"v1.k7.{text}").to_spec()
    assert missing_permission({}, HTTP, spec) == "the secret key k7"
    assert missing_permission({"secret_keys": ("k7",)}, HTTP, spec) is None


def test_tasks_need_no_permission() -> None:
    assert missing_permission({}, "work", None) is None


def test_differences_are_what_others_have() -> None:
    assert differences({}) == {}
    same = {"allow": ["10.0.0.0/8"]}
    assert differences({1: same, 2: same}) == {}
    assert differences({1: same, 2: {}, 3: {"allow": ["agent"]}}) == {
        1: ["allow agent"],
        2: ["allow 10.0.0.0/8", "allow agent"],
        3: ["allow 10.0.0.0/8"],
    }


@pytest.mark.parametrize("own", [None, {}, {"allow": ("10.0.0.0/8",)}])
def test_permissions_are_published(own: dict[str, tuple[str, ...]] | None) -> None:
    profile = NodeProfile(("work",), permissions=own)
    assert NodeProfile.from_bytes(profile.to_bytes()) == profile
