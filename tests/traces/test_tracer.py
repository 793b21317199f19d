"""The tracer in one process: sampling, a collector that is away, and nothing at all without one."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

import duetime as dt
from duetime.app.tracing import is_configured, open_tracer
from tests.servers.otlp import OtlpReceiver

JOBS = 400


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Accepts connections and never answers: worse than a port that refuses them."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as server:
        yield int(server.getsockname()[1])


async def run_jobs(app: dt.App, count: int) -> float:
    """Seconds."""

    @app.task("work")
    async def work() -> None: ...

    began = time.monotonic()
    async with app.running():
        jobs = await app.submit_many([dt.NewJob("work") for _ in range(count)])
        for job in jobs:
            await job.wait(raise_on_failure=True)
    return time.monotonic() - began


async def test_silent_collector_does_not_hold_up_jobs(silent_port: int) -> None:
    plain = await run_jobs(dt.App("memory://"), JOBS)
    app = dt.App("memory://", traces=f"http://127.0.0.1:{silent_port}")
    lapse = await run_jobs(app, JOBS)
    # Closing waits for the last export for three seconds at most. An export alone would take longer.
    assert lapse < 10 * plain + 4.5


async def test_more_spans_than_the_queue_holds_are_dropped(silent_port: int) -> None:
    tracer = open_tracer(f"http://127.0.0.1:{silent_port}")
    began = time.monotonic()
    for _ in range(20_000):
        with tracer.request("GET", None, {}):
            pass
    lapse = time.monotonic() - began
    assert lapse < 60  # a queue that waits for room would wait for exports of five seconds each
    async with asyncio.timeout(60):
        await tracer.flush()


async def test_unsampled_caller_makes_no_spans() -> None:
    with OtlpReceiver() as receiver:
        app = dt.App("memory://", traces=receiver.url, trace_sampling=0.0)
        await run_jobs(app, 20)
        assert receiver.spans == []


@pytest.mark.parametrize(
    ("environment", "url", "on"),
    [
        ({}, None, False),
        ({}, "http://c:4318", True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, None, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, None, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"}, None, False),
        ({"OTEL_SDK_DISABLED": "true"}, "http://c:4318", False),
    ],
)
def test_traces_are_on_only_if_a_collector_is_named(
    environment: dict[str, str], url: str | None, on: bool
) -> None:
    assert is_configured(url, environment) is on


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(dt.ConfigError, match="traces: 'collector:4318' is not the URL"):
        dt.App("memory://", traces="collector:4318")
    with pytest.raises(dt.ConfigError, match="trace_sampling: 2 must be a number from 0 to 1"):
        dt.App("memory://", traces="http://127.0.0.1:1", trace_sampling=2)


def test_nothing_is_imported_without_traces() -> None:
    code = (
        "import sys, asyncio, duetime as dt\n"
        "app = dt.App('memory://')\n"
        "async def main():\n"
        "    async with app.running(): pass\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if name.startswith(('opentelemetry', 'google'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
