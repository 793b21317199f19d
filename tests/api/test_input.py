"""Bad input: each a problem+json that names the field and the remedy, on the quick route and on those FastAPI
serves."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from duetime.api.bodies import MAX_BODY, parse
from duetime.api.problems import ApiProblem
from tests.api.conftest import TASK, Api, refused

DEEP = b'{"target":{"type":"task","name":"a"},"payload":{"a":' + b"[" * 40 + b"]" * 40 + b"}}"
SCHEDULE = {"name": "nightly", "when": {"cron": "30 2 * * *"}, "target": TASK}


@pytest.mark.parametrize("path", ["/jobs", "/schedules", "/jobs/batch"])
@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, "json_malformed"),
        (b"", 400, "json_malformed"),
        (b"\xff", 400, "json_malformed"),
        (b'{"a": NaN}', 400, "json_malformed"),
        (b'{"a": "\x00"}', 400, "json_malformed"),
        (b'{"a": 1, "a": 1}', 422, "key_duplicate"),
        (b'{"a": "\\u0000"}', 422, "input_invalid"),
        (b'{"a": "\\ud800"}', 422, "input_invalid"),
        (b'{"\\ud800": 1}', 422, "input_invalid"),
        (b'{"a": 1e999}', 422, "input_invalid"),
        (b'{"a": ' + b"9" * 5_000 + b"}", 422, "input_invalid"),
        (DEEP, 422, "too_deep"),
        (b"[" * 100_000, 422, "too_deep"),
        (b"[]", 422, "input_invalid"),
        (b"null", 422, "input_invalid"),
    ],
)
async def test_body_that_is_not_clean_json_is_refused(
    api: Api, path: str, body: bytes, status: int, code: str
) -> None:
    problem = refused(await api.post(path, body), status, code)
    assert problem["field"]


@pytest.mark.parametrize("path", ["/jobs", "/schedules"])
async def test_a_byte_order_mark_is_no_part_of_the_json(api: Api, path: str) -> None:
    body = json.dumps(SCHEDULE if path == "/schedules" else {"target": TASK}).encode("utf-8-sig")
    assert (await api.post(path, body)).status_code == 201
    assert refused(await api.post(path, b""), 400, "json_malformed", "body")["detail"].endswith("send JSON")


@pytest.mark.parametrize("path", ["/jobs", "/schedules"])
async def test_a_body_that_is_too_large_is_not_read_to_its_end(api: Api, path: str) -> None:
    problem = refused(await api.post(path, b" " * (MAX_BODY + 1)), 413, "body_too_large")
    assert "262,144" in problem["detail"]
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while read < 100:
            read += 1
            yield b" " * 65_536

    answer = await api.client.post(
        f"/api/v1{path}", content=endless(), headers={"content-type": "application/json"}
    )
    refused(answer, 413, "body_too_large")
    keys = json.dumps({"target": TASK, "payload": {str(number): 0 for number in range(1_000)}}).encode()
    refused(await api.post(path, keys), 422, "too_many_keys")


@pytest.mark.parametrize("path", ["/jobs", "/schedules"])
@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "",
        "application/x-www-form-urlencoded",
        "application/json; charset=utf-16",
        "application/xml",
    ],
)
async def test_body_not_declared_as_json_is_refused(api: Api, path: str, kind: str) -> None:
    """What a form of another site can send never gets past this."""
    refused(
        await api.post(path, json.dumps({"target": TASK}).encode(), content_type=kind),
        415,
        "media_type_unsupported",
        "Content-Type",
    )


async def test_compressed_bodies_are_refused(api: Api) -> None:
    refused(
        await api.post("/jobs", {"target": TASK}, content_encoding="gzip"),
        415,
        "media_type_unsupported",
        "Content-Encoding",
    )


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"target": None}, "target", "input_invalid"),
        ({"target": {}}, "target.type", "input_invalid"),
        ({"target": {"type": "task"}}, "target.name", "input_invalid"),
        ({"target": {"type": "task", "name": "a", "url": "x"}}, "target.url", "input_invalid"),
        ({"target": {"type": "http", "url": "ftp://a"}}, "target.url", "input_invalid"),
        (
            {"target": {"type": "http", "url": "https://a.example", "headers": {"X": "a\r\nY: b"}}},
            "target.headers.X",
            "input_invalid",
        ),
        (
            {"target": {"type": "http", "url": "https://a.example", "headers": {"Host": "b"}}},
            "target.headers.Host",
            "input_invalid",
        ),
        ({"payload": [1]}, "payload", "payload_invalid"),
        ({"payload": None}, "payload", "payload_invalid"),
        ({"priority": True}, "priority", "input_invalid"),
        ({"priority": 10}, "priority", "input_invalid"),
        ({"priority": 1.5}, "priority", "input_invalid"),
        ({"priority": "5"}, "priority", "input_invalid"),
        ({"queue": " a"}, "queue", "input_invalid"),
        ({"queue": None}, "queue", "input_invalid"),
        ({"timeout": "0s"}, "timeout", "input_invalid"),
        ({"timeout": 10}, "timeout", "input_invalid"),
        ({"retry": {"max_attempts": 0}}, "retry.max_attempts", "input_invalid"),
        ({"retry": {"max_attempts": True}}, "retry.max_attempts", "input_invalid"),
        ({"retry": {"tries": 1}}, "retry.tries", "input_invalid"),
        ({"retry": None}, "retry", "input_invalid"),
        ({"delivery": "sometimes"}, "delivery", "input_invalid"),
        ({"labels": {"a": 1}}, "labels.a", "input_invalid"),
        ({"tenant": "other"}, "tenant", "input_invalid"),
        ({"state": "dead"}, "state", "input_invalid"),
        ({"attempt": 9}, "attempt", "input_invalid"),
    ],
)
@pytest.mark.parametrize("path", ["/jobs", "/schedules"])
async def test_a_wrong_value_is_named(
    api: Api, path: str, change: dict[str, Any], field: str, code: str
) -> None:
    """What belongs to the store cannot be set from outside."""
    base = {"target": TASK} if path == "/jobs" else SCHEDULE
    refused(await api.post(path, {**base, **change}), 422, code, field)
    assert (await api.get(path)).json()["items"] == []


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"at": "2030-01-01T09:00:00"}, "at"),
        ({"at": "2030-02-30T09:00:00Z"}, "at"),
        ({"at": "2030-W01-1T09:00:00Z"}, "at"),
        ({"at": "2030-01-01"}, "at"),
        ({"at": "1969-12-31T23:59:59Z"}, "at"),
        ({"at": "9999-12-31T23:59:59Z"}, "at"),
        ({"at": 1_900_000_000}, "at"),
        ({"at": ""}, "at"),
        ({"delay": "soon"}, "delay"),
        ({"delay": "-1s"}, "delay"),
        ({"delay": ""}, "delay"),
        ({"delay": "1s", "at": "2030-01-01T09:00:00Z"}, "delay"),
        ({"unique_key": ""}, "unique_key"),
    ],
)
async def test_a_wrong_moment_of_a_job_is_named(api: Api, change: dict[str, Any], field: str) -> None:
    refused(await api.post("/jobs", {"target": TASK, **change}), 422, "input_invalid", field)


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"when": {"cron": "0 0 30 2 *"}}, "when.cron", "when_never_fires"),
        ({"when": {"cron": "61 * * * *"}}, "when.cron", "when_invalid"),
        ({"when": {"cron": "* * * * *", "tz": "Mars/Base"}}, "when.tz", "zone_unknown"),
        ({"when": {"every": "1ms"}}, "when.every", "when_invalid"),
        ({"when": {"at": "2020-01-01T00:00:00Z"}}, "when", "when_never_fires"),
        ({"when": {"at": "2030-01-01T00:00:00"}}, "when.at", "when_invalid"),
        ({"when": {}}, "when", "when_invalid"),
        ({"when": {"every": "1m", "cron": "* * * * *"}}, "when", "when_invalid"),
        ({"name": "@x"}, "name", "input_invalid"),
        ({"name": ""}, "name", "input_invalid"),
        ({"overlap": "maybe"}, "overlap", "input_invalid"),
        ({"missed": {"policy": "never"}}, "missed.policy", "input_invalid"),
        ({"max_runs": 0}, "max_runs", "input_invalid"),
        ({"start_at": "2030-01-01T00:00:00"}, "start_at", "input_invalid"),
        ({"end_at": "2020-01-01T00:00:00Z"}, "when", "when_never_fires"),
        ({"version": 3}, "version", "input_invalid"),
    ],
)
async def test_a_wrong_value_of_a_schedule_is_named(
    api: Api, change: dict[str, Any], field: str, code: str
) -> None:
    refused(await api.post("/schedules", {**SCHEDULE, **change}), 422, code, field)


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=1001",
        "limit=x",
        "limit=true",
        "state=odd",
        "due_after=yesterday",
        "due_after=2030-01-01",
        "nonsense=1",
        "queue=@x",
    ],
)
async def test_a_wrong_query_is_named(api: Api, query: str) -> None:
    refused(await api.get(f"/jobs?{query}"), 422, "input_invalid", query.partition("=")[0])


async def test_several_wrong_values_are_listed(api: Api) -> None:
    problem = refused(
        await api.post("/jobs", {"target": TASK, "priority": True, "odd": 1}),
        422,
        "input_invalid",
        "priority",
    )
    assert [one["field"] for one in problem["errors"]] == ["priority", "odd"]


async def test_unknown_addresses_and_methods_are_refused(api: Api) -> None:
    refused(await api.get("/nothing"), 404, "not_found")
    answer = await api.ask("PUT", "/jobs")
    refused(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "GET, POST"


def test_plain_body_is_not_checked_recursively() -> None:
    assert parse(b'{"a": [1, 2.5, "\xc3\xa9", null, true]}') == {"a": [1, 2.5, "é", None, True]}
    assert parse(b'{"a": "\\ud83d\\ude00"}') == {"a": "😀"}
    with pytest.raises(ApiProblem):
        parse(b'{"a": {"b": 1, "b": 2}}')


@pytest.mark.parametrize(
    ("method", "path", "field"),
    [
        ("GET", "/schedules/a%00b", "path"),
        ("GET", "/jobs?error=%00", "error"),
        ("GET", "/jobs?limit=1&label=team:%00", "label"),
        ("GET", "/schedules?text=a%00", "text"),
        ("POST", "/schedules/%00/pause", "path"),
        ("DELETE", "/schedules/%00", "path"),
    ],
)
async def test_nul_is_refused_in_the_address_too(api: Api, method: str, path: str, field: str) -> None:
    """PostgreSQL cannot search for it: the caller would get a 503 and repeat the request."""
    refused(await api.ask(method, path), 422, "input_invalid", field)


@pytest.mark.parametrize(
    ("method", "path", "field"),
    [
        ("GET", "/jobs?state=pending&state=dead", "state"),
        ("GET", "/schedules?limit=1&limit=1", "limit"),
        ("GET", "/nodes?limit=1", "limit"),
        ("POST", "/jobs?dry_run=true", "dry_run"),
        ("POST", "/schedules?dry_run=true", "dry_run"),
        ("DELETE", "/schedules/nightly?dry_run", "dry_run"),
    ],
)
async def test_query_parameters_that_are_not_read_are_refused(
    api: Api, method: str, path: str, field: str
) -> None:
    """The caller expects an effect: jobs of both states, or that nothing is changed."""
    body = {"/jobs": {"target": TASK}, "/schedules": SCHEDULE}.get(path.partition("?")[0])
    refused(await api.ask(method, path, body if method == "POST" else None), 422, "input_invalid", field)
    assert (await api.get("/jobs")).json()["items"] == (await api.get("/schedules")).json()["items"] == []


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/schedules/nightly/trigger"),
        ("POST", "/schedules/nightly/resume"),
        ("DELETE", "/schedules/nightly"),
    ],
)
async def test_a_body_that_is_not_read_is_refused(api: Api, method: str, path: str) -> None:
    """The caller expects an effect: a job with this payload, or this reason."""
    await api.post("/schedules", SCHEDULE)
    for body in (b'{"payload": {"customer": "c1"}}', b"customer=c1", b"{" + b" " * 1_000_000):
        refused(await api.ask(method, path, body), 422, "input_invalid", "body")
    assert (await api.get("/jobs")).json()["items"] == []
    assert (await api.ask(method, path, b" {} ")).is_success


async def test_the_scope_is_checked_before_a_body_that_is_not_read(api: Api) -> None:
    refused(
        await api.ask("DELETE", "/schedules/nightly", b"odd", host="evil.example"), 403, "host_not_allowed"
    )


@pytest.mark.parametrize(
    ("path", "body", "detail"),
    [
        ("/jobs", None, "body: must be an object"),
        ("/jobs", {"target": TASK, "retry": None}, "retry: must be an object"),
        ("/jobs", {"target": "task:a"}, "target: must be an object"),
        ("/jobs", {"target": TASK, "queue": None}, "queue: must be text"),
        ("/jobs", {"target": TASK, "priority": "5"}, "priority: must be a whole number"),
        ("/jobs/batch", {"jobs": TASK}, "jobs: must be a list"),
        ("/jobs/batch", {"jobs": []}, "jobs: list should have at least 1 item, not 0"),
        (
            "/jobs",
            {"target": TASK, "at": "2030-01-01T09:00:00"},
            "at: '2030-01-01T09:00:00' has no time zone: add Z for UTC, or an offset like +01:00",
        ),
    ],
)
async def test_a_wrong_kind_is_explained_without_python(
    api: Api, path: str, body: dict[str, Any] | None, detail: str
) -> None:
    data = b"null" if body is None else body
    assert refused(await api.post(path, data), 422, "input_invalid")["detail"] == detail


@pytest.mark.parametrize("name", ["label", "payload"])
async def test_the_form_of_a_pair_is_explained(api: Api, name: str) -> None:
    for path in ("/jobs", "/dead") if name == "payload" else ("/jobs", "/schedules"):
        for value in ("team", ":billing"):
            problem = refused(await api.get(f"{path}?{name}={value}"), 422, "input_invalid", name)
            assert problem["detail"].startswith(f"{name}: {value!r} has not the form ")


@pytest.mark.parametrize(
    ("name", "value"),
    [("due_after", "yesterday"), ("queue", "@x"), ("label", "team"), ("payload", "x"), ("schedule", " ")],
)
async def test_a_wrong_value_of_a_bulk_filter_is_named_with_its_place(
    api: Api, name: str, value: str
) -> None:
    body = {"action": "cancel", "filter": {name: value}}
    refused(await api.post("/jobs/bulk", body), 422, "input_invalid", f"filter.{name}")


@pytest.mark.parametrize("path", ["/jobs/nope", "/jobs/nope/retry", "/jobs/01935c2e-7b3a-7000-8000/why"])
async def test_a_mistyped_job_id_is_named(api: Api, path: str) -> None:
    problem = refused(await api.get(path), 404, "job_not_found")
    assert problem["detail"].startswith(f"{path.split('/')[2]!r} is not a job id: ids look like")


async def test_an_unknown_route_of_a_job_is_an_unknown_address(api: Api) -> None:
    refused(await api.get("/jobs/01935c2e-7b3a-7000-8000-000000000000/nope"), 404, "not_found")
