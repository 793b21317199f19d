"""/metrics, read by the parsers of the reference client and checked by promtool."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from datetime import timedelta
from pathlib import Path
from time import thread_time
from typing import Any
from uuid import uuid4

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics import parser as open_metrics
from prometheus_client.parser import text_string_to_metric_families as read_text

import duetime as dt
from duetime.api.caller import AuthRequest, Caller
from duetime.api.service import build
from duetime.config import Settings
from duetime.errors import StoreUnavailable
from duetime.model.api_key import Scope
from duetime.model.events import AttemptsSettled
from duetime.model.histogram import Histogram
from duetime.model.instant import SECOND, to_datetime
from duetime.model.job import Claimed, Ending, State
from duetime.model.limit import MAX_QUEUES, OTHER
from duetime.model.settle import Settlement
from duetime.observers.counters import MAX_NAMED, ProcessCounters
from duetime.observers.metrics import METRICS, MetricsPage
from tests.api.conftest import Api, client_of, refused
from tests.servers.debian import installed, unpack

DOCS = Path(__file__).parents[2] / "docs" / "observing.md"
OPEN = "application/openmetrics-text; version=1.0.0"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def read_open_metrics(text: str) -> list[Metric]:
    # Theirs has no types.
    return list(open_metrics.text_string_to_metric_families(text))  # type: ignore[no-untyped-call]


async def scrape(api: Api) -> Samples:
    text = (await api.client.get("/metrics")).text
    return {
        (one.name, frozenset(one.labels.items())): one.value
        for family in read_text(text)
        for one in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float | None:
    return samples.get((name, frozenset(labels.items())))


async def work_done(api: Api) -> None:
    """Something of everything a node does."""

    @api.app.task("good", queue="mail")
    async def good() -> None: ...

    @api.app.task("bad", retry=dt.Retry(max_attempts=2, first_delay="1ms"))
    async def bad() -> None:
        raise ValueError("no")

    async with api.app.running():
        await api.app.schedule("often", "good", dt.Every("1h"))
        jobs = [await api.app.submit("good") for _ in range(3)] + [await api.app.submit("bad")]
        for job in jobs:
            await job.wait("60s")


@pytest.fixture
def page() -> MetricsPage:
    """One sample of everything that is declared."""
    made, lapses = MetricsPage(), Histogram()
    lapses.add([1, 999, 1_000, 5 * SECOND, 4_000 * SECOND])
    for metric in METRICS.values():
        labels = [f'{name}\'s\n"value"\\' for name in metric.labels]
        if metric.kind == "histogram":
            made.add_histogram(metric.name, lapses, *labels)
        else:
            made.add(metric.name, 1.5, *labels)
    return made


@pytest.mark.parametrize("form", ["text", "open"])
def test_both_formats_are_read_by_the_reference_parser(page: MetricsPage, form: str) -> None:
    families = {
        one.name: one
        for one in (read_open_metrics if form == "open" else read_text)(page.text(form == "open"))
    }
    assert set(families) == set(METRICS)
    for name, metric in METRICS.items():
        family = families[name]
        assert (family.type, family.documentation) == (metric.kind, metric.help)
        for sample in family.samples:
            assert {label: text for label, text in sample.labels.items() if label != "le"} == {
                label: f'{label}\'s\n"value"\\' for label in metric.labels
            }


def test_histogram_adds_up(page: MetricsPage) -> None:
    families = {one.name: one for one in read_open_metrics(page.text(True))}
    samples = {
        (one.name, one.labels.get("le")): one.value for one in families["duetime_claim_seconds"].samples
    }
    assert [
        samples["duetime_claim_seconds_bucket", bound]
        for bound in ("0.001", "0.0025", "5.0", "500.0", "+Inf")
    ] == [3, 3, 4, 4, 5]
    assert samples["duetime_claim_seconds_count", None] == 5
    assert samples["duetime_claim_seconds_sum", None] == pytest.approx(4_005.002)


def test_metric_names_follow_the_conventions() -> None:
    for name, metric in METRICS.items():
        assert re.fullmatch(r"(duetime|process)_[a-z_]+", name)
        assert not name.endswith(("_total", "_count", "_sum", "_bucket"))
        assert metric.kind != "histogram" or name.endswith("_seconds")
        assert metric.help.endswith(".")
        assert "le" not in metric.labels


def test_the_documentation_lists_every_metric() -> None:
    rows = re.findall(
        r"^\| `((?:duetime|process)_\w+)` \| (\w+) \| ([^|]*) \| (.*) \|$", DOCS.read_text("utf-8"), re.M
    )
    listed = [(name, kind, tuple(re.findall(r"`(\w+)`", labels)), text) for name, kind, labels, text in rows]
    assert listed == [(metric.shown, metric.kind, metric.labels, metric.help) for metric in METRICS.values()]


async def test_finished_work_is_counted(api: Api) -> None:
    await work_done(api)
    found = await scrape(api)
    assert value(found, "duetime_jobs_submitted_total", queue="mail") == 3
    assert value(found, "duetime_jobs_claimed_total", queue="default") == 2
    assert value(found, "duetime_attempts_total", queue="mail", ending="succeeded") == 3
    assert value(found, "duetime_attempts_total", queue="default", ending="failed") == 2
    assert value(found, "duetime_jobs_finished_total", queue="default", state="dead") == 1
    assert value(found, "duetime_jobs_retried_total", queue="default") == 1
    assert value(found, "duetime_job_lateness_seconds_count", queue="mail") == 3
    assert value(found, "duetime_job_duration_seconds_bucket", queue="mail", le="+Inf") == 3
    assert (value(found, "duetime_claim_seconds_count") or 0) >= 3
    assert (value(found, "duetime_settle_seconds_count") or 0) >= 2
    assert value(found, "duetime_store_up") == 1
    assert value(found, "duetime_nodes", state="alive") == 0
    assert value(found, "duetime_nodes", state="left") == 1
    assert value(found, "duetime_nodes", state="dead") == 0


async def test_work_is_counted_by_target_and_schedule(api: Api) -> None:
    await work_done(api)

    @api.app.task("tick")
    async def tick() -> None: ...

    async with api.app.running():
        await api.app.schedule("now", "tick", dt.Every("1s"))

        async def fired() -> bool:
            found = await scrape(api)
            name = {"tenant": "default", "schedule": "now"}
            return (
                value(found, "duetime_schedule_attempts_total", **name, ending="succeeded") or 0
            ) >= 1 and (value(found, "duetime_schedule_lateness_seconds_count", **name) or 0) >= 1

        async with asyncio.timeout(60):
            while not await fired():
                await asyncio.sleep(0.05)
    found = await scrape(api)
    assert value(found, "duetime_target_attempts_total", target="good", ending="succeeded") == 3
    assert value(found, "duetime_target_attempts_total", target="bad", ending="failed") == 2


def test_targets_and_schedules_beyond_a_hundred_count_together() -> None:
    counters = ProcessCounters()
    for number in range(MAX_NAMED + 5):
        job = Claimed(
            uuid4(), 1, f"task-{number}", b"", 0, "mail", 5, 0, 0, 0, False, uuid4(), f"schedule-{number}",
            None, None, None, None, "default",
        )  # fmt: skip
        done = Settlement(job.id, 1, State.SUCCEEDED, 0, 0, 0, Ending.SUCCEEDED, 0, 1, None, None)
        counters(AttemptsSettled([done], [job]), 0)
    assert len(counters.targets) == len(counters.schedules) == MAX_NAMED + 1
    assert counters.targets[OTHER]["succeeded"] == 5
    assert counters.schedules["", OTHER].endings["succeeded"] == 5


async def test_lag_is_the_age_of_the_oldest_due_job(api: Api) -> None:
    await api.app.open()
    an_hour_ago = to_datetime(await api.app.now()) - timedelta(hours=1)
    await api.app.submit("unknown", queue="mail", at=an_hour_ago)
    await api.app.submit("unknown", queue="mail")
    await api.app.submit("unknown", queue="later", delay="1h")
    await api.app.submit("unknown", queue="held")
    await api.app.queues.pause("held")
    await api.app.queues.limit("mail", max_running=7)
    found = await scrape(api)
    assert 3_600 <= (value(found, "duetime_queue_lag_seconds", queue="mail") or 0) < 7_200
    assert value(found, "duetime_queue_lag_seconds", queue="later") == 0
    assert value(found, "duetime_queue_lag_seconds", queue="held") is None
    assert value(found, "duetime_queue_max_running", queue="mail") == 7


async def test_running_node_has_heartbeat_metrics(api: Api) -> None:
    async with api.app.running():
        await api.submit(queue="mail", delay="1h")
        await api.submit(queue="mail")
        found = await scrape(api)
        assert (
            value(found, "duetime_jobs", queue="mail", state="pending"),
            value(found, "duetime_jobs", queue="mail", state="due"),
        ) == (
            2,
            1,
        )
        assert (value(found, "duetime_heartbeat_trusted"), value(found, "duetime_nodes", state="alive")) == (
            1,
            1,
        )
        for name in (
            "duetime_heartbeat_age_seconds",
            "duetime_loop_lag_seconds",
            "duetime_clock_skew_seconds",
        ):
            assert abs(value(found, name) or 0) < 5, name
        assert value(found, "duetime_node_leases") == value(
            found, "duetime_leases", role="planner", state="held"
        )
    assert value(await scrape(api), "duetime_heartbeat_trusted") is None


async def test_requests_are_counted_by_route_and_never_by_address(api: Api) -> None:
    """J10."""
    job_id = await api.submit()
    for path in (
        f"/jobs/{job_id}",
        f"/jobs/{job_id}",
        "/jobs/01935c2e-7b3a-7000-8000-000000000000",
        "/nothing/of/the/kind",
        "/schedules?limit=1",
    ):
        await api.get(path)
    await api.client.request("BREW", "/coffee")
    found = await scrape(api)
    route = "/api/v1/jobs/{job_id}"
    assert value(found, "duetime_http_requests_total", route="/api/v1/jobs", method="POST", status="2xx") == 1
    assert value(found, "duetime_http_requests_total", route=route, method="GET", status="2xx") == 2
    assert value(found, "duetime_http_requests_total", route=route, method="GET", status="4xx") == 1
    assert value(found, "duetime_http_requests_total", route="other", method="GET", status="4xx") == 1
    assert value(found, "duetime_http_requests_total", route="other", method="other", status="4xx") == 1
    assert value(found, "duetime_http_request_seconds_count", route=route) == 3
    assert job_id not in str(found)


async def test_queues_beyond_a_hundred_are_counted_together(api: Api) -> None:
    """J10."""

    @api.app.task("good")
    async def good() -> None: ...

    async with api.app.running():
        jobs = await api.app.submit_many(
            [dt.NewJob("good", queue=f"q{number}") for number in range(MAX_QUEUES + 50)]
        )
        for job in jobs:
            await job.wait("60s")
        await api.app.submit_many(
            [dt.NewJob("unknown", queue=f"u{number}") for number in range(MAX_QUEUES + 50)]
        )
        found = await scrape(api)
    for name in (
        "duetime_attempts_total",
        "duetime_jobs",
        "duetime_jobs_submitted_total",
        "duetime_job_lateness_seconds_count",
    ):
        queues = {dict(labels)["queue"] for sample, labels in found if sample == name}
        assert len(queues) == MAX_QUEUES + 1, name
        assert OTHER in queues
    done = [amount for (name, labels), amount in found.items() if name == "duetime_attempts_total"]
    assert sum(done) == MAX_QUEUES + 50


async def test_metrics_report_an_unavailable_store(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(counted: bool = False) -> Any:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(api.app.store, "queues", away)
    found = await scrape(api)
    assert value(found, "duetime_store_up") == 0
    assert value(found, "duetime_nodes", state="alive") is None
    assert value(found, "duetime_fires_planned_total") == 0


async def test_scrapes_share_one_read_of_the_store(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    queues, asked = api.app.store.queues, 0

    async def read(counted: bool = False, **options: Any) -> Any:
        nonlocal asked
        asked += counted
        return await queues(counted, **options)

    monkeypatch.setattr(api.app.store, "queues", read)
    await asyncio.gather(*(scrape(api) for _ in range(10)))
    assert asked == 1


async def test_a_scrape_takes_less_than_ten_milliseconds(api: Api) -> None:
    await work_done(api)
    await api.client.get("/metrics")
    lapses = []
    for _ in range(10):
        began = thread_time()  # of the processor: what others do on this machine is not counted
        await api.client.get("/metrics")
        lapses.append(thread_time() - began)
    assert min(lapses) < 0.5, "aimed at 10 ms: only what is hopeless fails"


async def test_openmetrics_is_sent_on_request(api: Api) -> None:
    plain, opened = (
        await api.client.get("/metrics"),
        await api.client.get("/metrics", headers={"accept": f"{OPEN},text/plain;q=0.5"}),
    )
    assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert opened.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert opened.text.endswith("# EOF\n")
    assert {family.name for family in read_open_metrics(opened.text)} <= set(METRICS)


class Keys:
    local = False

    async def authenticate(self, request: AuthRequest) -> Caller:
        return Caller(request.headers["authorization"], frozenset({Scope.READ}), "k")


async def test_metrics_need_a_key_of_the_operator_tenant() -> None:
    """They name everybody's queues."""
    app = dt.App("memory://")
    await app.open()
    async with client_of(build(app, Settings(), authenticator=Keys())) as client:
        assert (await client.get("/metrics", headers={"authorization": "default"})).status_code == 200
        refused(await client.get("/metrics", headers={"authorization": "other"}), 403, "tenant_not_allowed")
    await app.close()


@pytest.fixture(scope="module")
def promtool() -> tuple[str, dict[str, str]]:
    """The program and its environment. Only unpacked: an installed package would start Prometheus."""
    found = installed("promtool", "prometheus") or unpack("promtool", "prometheus")
    if found is None:
        pytest.fail("promtool is missing: `apt-get install prometheus`")
    return str(found.path), {**os.environ, **found.environment}


async def test_promtool_accepts_the_metrics(api: Api, promtool: tuple[str, dict[str, str]]) -> None:
    await work_done(api)
    text = (await api.client.get("/metrics")).text
    program, environment = promtool
    done = subprocess.run(
        [program, "check", "metrics"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
