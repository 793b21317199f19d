"""HTTP targets: every field checked and named, headers that are not the caller's refused, secrets stored
sealed or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.errors import InvalidInput, InvalidPayload
from duetime.model.codec import decode, encode
from duetime.model.headers import RESERVED
from duetime.model.target import HIDDEN, HttpTarget

URL = "https://agent.example/run"
CANARY = "canary-4711"
SIGNING = "whsec_" + "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="


def target(**fields: Any) -> HttpTarget:
    return HttpTarget.from_json({"type": "http", "url": URL, **fields}, "target")


def seal(name: str, text: str) -> str:
    return f"sealed({name})"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"url": None}, "target.url"),
        ({"url": "gopher://x/"}, "target.url"),
        ({"type": "task"}, "target.type"),
        ({"methods": "GET"}, "target.methods"),
        ({"a\nb": 1}, "target"),
        ({"method": "CONNECT"}, "target.method"),
        ({"method": "TRACE"}, "target.method"),
        ({"method": "GET / HTTP/1.1\r\nX: y"}, "target.method"),
        ({"method": 1}, "target.method"),
        ({"headers": []}, "target.headers"),
        ({"headers": {"X": 1}}, "target.headers.X"),
        ({"headers": {"X": True}}, "target.headers.X"),
        ({"headers": {f"X-{n}": "" for n in range(65)}}, "target.headers"),
        ({"headers": {"X": "a" * 4_097}}, "target.headers.X"),
        ({"headers": {f"X-{n}": "a" * 4_000 for n in range(5)}}, "target.headers"),
        ({"headers": {"X-A": "1", "x-a": "2"}}, "target.headers"),
        ({"headers": {"X-A": "1"}, "secret_headers": {"x-a": "2"}}, "target.secret_headers"),
        ({"secret_headers": {"signing_secret": "2"}}, "target.secret_headers"),
        ({"secret_headers": {"Host": CANARY}}, "target.secret_headers.Host"),
        ({"signing_secret": CANARY}, "target.signing_secret"),
        ({"signing_secret": "whsec_c2hvcnQ="}, "target.signing_secret"),
        ({"body": "xml"}, "target.body"),
        ({"body": None}, "target.body"),
        ({"body": ["json"]}, "target.body"),
        ({"body": "raw", "method": "GET"}, "target.body"),
        ({"timeout": "0s"}, "target.timeout"),
        ({"timeout": "2h"}, "target.timeout"),
        ({"timeout": 30}, "target.timeout"),
        ({"success": []}, "target.success"),
        ({"success": 200}, "target.success"),
        ({"success": [True]}, "target.success"),
        ({"success": [600]}, "target.success"),
        ({"success": ["6xx"]}, "target.success"),
        ({"success": ["299-200"]}, "target.success"),
        ({"success": [200] * 33}, "target.success"),
        ({"async": 1}, "target.async"),
        ({"async": "true"}, "target.async"),
    ],
)
def test_an_error_names_its_field_and_tells_no_secret(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        target(**fields)
    assert caught.value.field == field
    assert CANARY not in str(caught.value)
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("value", [None, [], "http://x/", 1])
def test_target_must_be_an_object(value: Any) -> None:
    with pytest.raises(InvalidInput, match="target: must be an object"):
        HttpTarget.from_json(value, "target")


@pytest.mark.parametrize(
    "name",
    [
        *sorted(RESERVED),
        "Webhook-Id",
        "WEBHOOK-Anything",
        "Duetime-Job-Id",
        "duetime-x",
        "Proxy-Authorization",
        "HOST",
    ],
)
def test_headers_that_are_not_the_caller_s(name: str) -> None:
    with pytest.raises(InvalidInput, match="leave it out"):
        target(headers={name: "x"})


@pytest.mark.parametrize(
    "name", ["", " ", "X Y", "X:", "X\r\nY", "X\0", "Ü", "X\x7f", "(x)", "a" * 129, "X\n"]
)
def test_names_outside_the_grammar(name: str) -> None:
    with pytest.raises(InvalidInput, match="is not a header name"):
        target(headers={name: "x"})


@pytest.mark.parametrize(
    "value", ["a\r\nY: b", "a\nb", "a\rb", "a\0", " a", "a ", "\ta", "ä", "\x7f", "\x1b[0m", "a\n", "\ud800"]
)
@pytest.mark.parametrize("kind", ["headers", "secret_headers"])
def test_values_outside_the_grammar(kind: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^target\.{kind}\.X: must be one line of printable ASCII"):
        target(**{kind: {"X": value}})


@given(st.dictionaries(st.text(max_size=6), st.text(max_size=8), max_size=3))
def test_whatever_passes_is_one_line(headers: dict[str, str]) -> None:
    try:
        found = target(headers=headers).headers
    except InvalidInput:
        return
    for name, value in found:
        assert f"{name}: {value}".isascii()
        assert not set(f"{name}{value}") & set("\r\n\0")
        assert ":" not in name


def test_target_survives_a_round_trip() -> None:
    written = {
        "method": "put",
        "headers": {"X-A": "1"},
        "timeout": "5s",
        "success": ["2xx", 404, "300-302"],
        "async": True,
        "body": "raw",
    }
    found = target(**written)
    assert HttpTarget.from_json(found.to_json()) == found
    assert HttpTarget.from_spec(found.to_spec()) == found
    assert found.to_json() == {"type": "http", "url": URL, **written, "method": "PUT"}
    assert [code for code in range(100, 600) if found.succeeded(code)] == [*range(200, 303), 404]


def test_defaults() -> None:
    assert target().to_json() == {
        "type": "http",
        "url": URL,
        "method": "POST",
        "headers": {},
        "body": "json",
        "timeout": "30s",
        "success": ["2xx"],
        "async": False,
    }


# -- secrets
# ----------------------------------------------------------------------------------------------------------
def test_a_secret_is_never_shown_and_never_stored_open() -> None:
    found = target(secret_headers={"Authorization": CANARY}, signing_secret=SIGNING)
    with pytest.raises(InvalidInput, match="cannot be stored") as caught:
        found.to_spec()
    shown = f"{found!r} {found} {found.to_json()} {caught.value} {found.hidden[0][1]}"
    assert CANARY not in shown
    assert SIGNING not in shown
    assert found.to_json()["secret_headers"] == {"Authorization": HIDDEN}
    assert found.to_json()["signing_secret"] == HIDDEN


def test_sealed_secret_is_stored_and_not_shown() -> None:
    found = target(secret_headers={"Authorization": CANARY}, signing_secret=SIGNING).sealed(seal)
    assert CANARY.encode() not in found.to_spec()
    assert HttpTarget.from_spec(found.to_spec()) == found
    assert "sealed(" not in str(found.to_json())
    assert dict(decode(found.to_spec())["sealed"]) == {
        "Authorization": "sealed(Authorization)",
        "signing_secret": "sealed(signing_secret)",
    }


def test_sealed_value_is_not_accepted_from_a_caller() -> None:
    """Otherwise a caller could have a sealed secret sent to a server of their own."""
    stored = decode(target(secret_headers={"A": CANARY}).sealed(seal).to_spec())
    with pytest.raises(InvalidInput, match=r"^target\.sealed: is unknown"):
        HttpTarget.from_json(stored, "target")


def test_a_stored_target_that_lost_its_secrets_is_not_called_without_them() -> None:
    shown = encode(target(secret_headers={"A": CANARY}).to_json())
    with pytest.raises(InvalidInput, match="were not stored"):
        HttpTarget.from_spec(shown)


def test_an_edit_keeps_the_secret_it_was_shown_hidden() -> None:
    before = target(secret_headers={"A": CANARY}, signing_secret=SIGNING).sealed(seal)
    edit = HttpTarget.from_json(before.to_json() | {"url": URL + "/other", "timeout": "7s"})
    assert edit.keeping_secrets_of(before).hidden == before.hidden
    assert target(secret_headers={"A": "new"}).keeping_secrets_of(before).hidden[0][1].text == "new"


def test_an_edit_cannot_carry_a_secret_to_another_host() -> None:
    before = target(secret_headers={"A": CANARY}).sealed(seal)
    for url in ("https://evil.example/run", "http://agent.example/run", "https://agent.example:8443/run"):
        with pytest.raises(InvalidInput, match="set again"):
            HttpTarget.from_json(before.to_json() | {"url": url}).keeping_secrets_of(before)
    with pytest.raises(InvalidInput, match="does not exist"):
        target(secret_headers={"B": HIDDEN}).keeping_secrets_of(before)


def test_placeholder_of_a_secret_is_not_sealed() -> None:
    for fields in ({"secret_headers": {"A": HIDDEN}}, {"signing_secret": HIDDEN}):
        with pytest.raises(InvalidInput, match="stands for a secret that does not exist"):
            target(**fields).sealed(seal)


# -- content
# ----------------------------------------------------------------------------------------------------------
def test_payload_is_sent_as_json_or_raw() -> None:
    """The very bytes that were stored."""
    assert target().content(b'{"b": 1,"a":2}') == b'{"b": 1,"a":2}'
    assert target().content(b"null") is None
    assert target(method="GET").content(b"{}") is None
    assert target(body="raw").content('"ä\\n"'.encode()) == "ä\n".encode()
    with pytest.raises(InvalidPayload, match="must be text"):
        target(body="raw").content(b"{}")
