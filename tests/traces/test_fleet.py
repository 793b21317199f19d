"""A fleet of real processes: a service that only answers, and a worker that runs jobs. Both export to one
receiver."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

import pytest

from tests.cli.node import python_path
from tests.servers.otlp import OtlpReceiver, ReceivedSpan
from tests.servers.service import Service

TASKS = """
import duetime as dt
app = dt.App("sqlite:///d.db")

@app.task("works")
async def works(ctx: dt.Context) -> None:
    ctx.log.warning("inside")

@app.task("fails", retry=dt.Retry(max_attempts=3, first_delay="1ms"))
def fails(ctx: dt.Context) -> None:
    raise ValueError("postgresql://anna:s3cret@db")

@app.task("own")
def own() -> None:
    from opentelemetry import trace
    with trace.get_tracer("shop").start_as_current_span("own step"):
        pass
"""
CALLER = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


class Recorder:
    """An HTTP target that keeps the traceparent header of each call."""

    def __init__(self) -> None:
        self.traceparents: list[str] = []
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                recorder.traceparents.append(self.headers["traceparent"])
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Fleet:
    def __init__(self, receiver: OtlpReceiver, target: Recorder, api: Service, worker: Service) -> None:
        self.receiver = receiver
        self.target = target
        self.api = api
        self.worker = worker

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = None if body is None else json.dumps(body).encode()
        given = {"content-type": "application/json", **headers}
        request = urllib.request.Request(f"{self.api.address}/api/v1{path}", data, given, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def submit(self, name: str, **fields: Any) -> str:
        headers = {"traceparent": fields.pop("traceparent")} if "traceparent" in fields else {}
        target = fields.pop("target", {"type": "task", "name": name})
        job_id: str = self.ask("POST", "/jobs", {"target": target, **fields}, **headers)["id"]
        return job_id

    def ended(self, job_id: str) -> dict[str, Any]:
        job: dict[str, Any] = self.ask("GET", f"/jobs/{job_id}?wait=60s")
        assert job["finished_at"] is not None, job
        return job

    def attempts(self, job_id: str, count: int) -> list[ReceivedSpan]:
        def found(spans: list[ReceivedSpan]) -> list[ReceivedSpan] | None:
            own = [
                span
                for span in spans
                if span.kind == "consumer" and span.attributes["messaging.message.id"] == job_id
            ]
            return own if len(own) >= count else None

        spans: list[ReceivedSpan] = self.receiver.wait_for(found)
        return sorted(spans, key=lambda span: span.attributes["duetime.attempt"])

    def span(self, id: str) -> ReceivedSpan:
        found: list[ReceivedSpan] = self.receiver.wait_for(
            lambda spans: [one for one in spans if one.id == id]
        )
        return found[0]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "tasks.py").write_text(TASKS)
    store = f"sqlite:///{folder / 'd.db'}"
    with OtlpReceiver() as receiver, Recorder() as target:
        environment = {"PYTHONPATH": python_path(folder), "OTEL_BSP_SCHEDULE_DELAY": "200"}
        link = "https://traces.example.org/trace/{trace_id}"
        common = ("--traces", receiver.url)
        with (
            Service(
                store, folder / "api.log", "--roles", "api", *common, "--trace-link", link,
                environment=environment, folder=folder,
            ) as api,
            Service(
                store, folder / "worker.log", "--roles", "planner,worker", "--app", "tasks:app", "--allow",
                "127.0.0.1", "--allow-ports", str(target.port), *common,
                environment=environment, folder=folder,
            ) as worker,
        ):  # fmt: skip
            yield Fleet(receiver, target, api, worker)


def test_one_trace_from_the_request_to_the_task(fleet: Fleet) -> None:
    job_id = fleet.submit("works", traceparent=f"00-{CALLER}-{PARENT}-01")
    job = fleet.ended(job_id)
    [attempt] = fleet.attempts(job_id, 1)
    send = fleet.span(attempt.parent)
    request = fleet.span(send.parent)
    assert (request.name, request.kind, request.parent) == ("POST /api/v1/jobs", "server", PARENT)
    assert (send.name, send.kind) == ("send default", "producer")
    assert (attempt.name, attempt.kind) == ("process default", "consumer")
    assert {span.trace for span in (request, send, attempt)} == {CALLER} == {job["trace_id"]}
    assert request.attributes == {
        "http.request.method": "POST",
        "url.scheme": "http",
        "url.path": "/api/v1/jobs",
        "http.route": "/api/v1/jobs",
        "http.response.status_code": 201,
    }
    assert send.attributes["messaging.message.id"] == job_id
    assert {
        name: attempt.attributes[name] for name in ("messaging.system", "duetime.target", "duetime.attempt")
    } == {
        "messaging.system": "duetime",
        "duetime.target": "works",
        "duetime.attempt": 1,
    }
    assert attempt.process != request.process
    assert attempt.resource["service.name"] == "duetime"
    assert fleet.ask("GET", "/me")["trace_link"] == "https://traces.example.org/trace/{trace_id}"
    logged = [json.loads(line) for line in fleet.worker.output.splitlines() if '"inside"' in line]
    assert [(one["trace_id"], one["span_id"]) for one in logged] == [(CALLER, attempt.id)]


def test_retries_are_traces_of_their_own_with_a_link_to_the_first(fleet: Fleet) -> None:
    job_id = fleet.submit("fails", traceparent=f"00-{CALLER}-{PARENT}-01")
    job = fleet.ended(job_id)
    first, *later = fleet.attempts(job_id, 3)
    assert first.trace == CALLER
    assert first.links == []
    assert len({first.trace, *(span.trace for span in later)}) == 3
    assert [(span.parent, span.links) for span in later] == [("", [(first.trace, first.id)])] * 2
    assert job["trace_id"] == later[-1].trace
    assert all(span.failed and span.attributes["error.type"] == "ValueError" for span in (first, *later))


def test_job_that_is_due_much_later_is_linked_and_not_a_child(fleet: Fleet) -> None:
    job_id = fleet.submit("works", delay="1h", traceparent=f"00-{CALLER}-{PARENT}-01")
    fleet.ask("POST", f"/jobs/{job_id}/run")
    job = fleet.ended(job_id)
    [attempt] = fleet.attempts(job_id, 1)
    assert attempt.trace == job["trace_id"] != CALLER
    assert (attempt.parent, attempt.links[0][0]) == ("", CALLER)


def test_fires_of_a_schedule_are_traces_of_their_own(fleet: Fleet) -> None:
    when = {"every": "1s"}
    fleet.ask(
        "POST", "/schedules", {"name": "often", "when": when, "target": {"type": "task", "name": "works"}}
    )

    def fires(spans: list[ReceivedSpan]) -> list[ReceivedSpan] | None:
        found = [span for span in spans if span.attributes.get("duetime.schedule") == "often"]
        return found if len(found) >= 2 else None

    spans: list[ReceivedSpan] = fleet.receiver.wait_for(fires)
    fleet.ask("POST", "/schedules/often/pause", {})
    assert all((span.parent, span.links) == ("", []) for span in spans)
    assert len({span.trace for span in spans}) == len(spans)


def test_http_targets_get_the_context_of_their_call(fleet: Fleet) -> None:
    target = fleet.target
    job_id = fleet.submit("", target={"type": "http", "url": f"{target.url}/a?token=hidden"})
    fleet.ended(job_id)
    [attempt] = fleet.attempts(job_id, 1)
    [header] = target.traceparents
    version, trace, span, flags = header.split("-")
    call = fleet.span(span)
    assert (version, trace, flags) == ("00", attempt.trace, "01")
    assert (call.name, call.kind, call.parent) == ("POST", "client", attempt.id)
    assert call.attributes["url.full"] == f"{target.url}/a"
    assert call.attributes["http.response.status_code"] == 200


def test_spans_of_the_task_itself_belong_to_the_attempt(fleet: Fleet) -> None:
    job_id = fleet.submit("own")
    fleet.ended(job_id)
    [attempt] = fleet.attempts(job_id, 1)
    [step] = fleet.receiver.wait_for(lambda spans: [one for one in spans if one.name == "own step"])
    assert (step.trace, step.parent) == (attempt.trace, attempt.id)


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/jobs?payload=customer.iban:hidden", "/api/v1/jobs"),
        ("/schedules?limit=7", "/api/v1/schedules"),
        ("/jobs/{job}/why", "/api/v1/jobs/{job_id}/why"),
        ("/jobs/{JOB}/why", "/api/v1/jobs/{job_id}/why"),
    ],
)
def test_request_has_one_span_named_by_its_whole_route(fleet: Fleet, path: str, route: str) -> None:
    job_id = fleet.submit("works", delay="1h")
    trace, later = uuid4().hex, uuid4().hex
    fleet.ask("GET", path.format(job=job_id, JOB=job_id.upper()), traceparent=f"00-{trace}-{PARENT}-01")
    # The spans of one process arrive in their order: with that of a later request, all of these are here.
    fleet.ask("GET", "/me", traceparent=f"00-{later}-{PARENT}-01")
    fleet.receiver.wait_for(lambda spans: [span for span in spans if span.trace == later])
    [span] = [span for span in fleet.receiver.spans if span.trace == trace]
    assert (span.name, span.attributes["http.route"]) == (f"GET {route}", route)


def test_only_duetime_and_tasks_make_spans(fleet: Fleet) -> None:
    """The web framework could make its own, with the queries of URLs in them."""
    fleet.ended(fleet.submit("own"))
    fleet.receiver.wait_for(lambda spans: [span for span in spans if span.scope == "shop"])
    assert {span.scope for span in fleet.receiver.spans} == {"duetime", "shop"}


def test_no_secret_is_in_a_span(fleet: Fleet) -> None:
    job_id = fleet.submit("fails")
    fleet.ended(job_id)
    fleet.attempts(job_id, 3)
    assert "s3cret" not in repr(fleet.receiver.spans)
    assert "hidden" not in repr(fleet.receiver.spans)
