"""The shipped rules and dashboards on a real Prometheus that scrapes a real fleet: every panel shows something,
and every alert fires because of a real fault and recovers."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import duetime as dt
from duetime.observers.metrics import METRICS
from tests.observing.scene import ROOT, RULES, Scene, faster
from tests.servers.prometheus import promtool

DASHBOARDS = sorted((ROOT / "deploy" / "grafana").glob("*.json"))
RUNBOOKS = (ROOT / "docs" / "runbooks.md").read_text("utf-8")
ALERTS = {rule["alert"]: rule for rule in yaml.safe_load(RULES.read_text("utf-8"))["groups"][0]["rules"]}
SAMPLE_NAME = re.compile(r"\b(?:duetime|process)_\w+")


def expressions() -> dict[str, str]:
    """By dashboard and panel."""
    return {
        f"{path.stem}: {panel['title']}, {target['legendFormat']}": target["expr"]
        for path in DASHBOARDS
        for panel in json.loads(path.read_text("utf-8"))["panels"]
        for target in panel["targets"]
    }


def test_promtool_accepts_the_rules(tmp_path: Path) -> None:
    done = promtool("check", "rules", RULES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"SUCCESS: {len(ALERTS)} rules found" in done.stdout


def test_every_alert_has_a_runbook() -> None:
    for name, rule in ALERTS.items():
        assert rule["annotations"]["runbook_url"].endswith(f"/docs/runbooks.md#{name.lower()}")
        assert f"\n## {name}\n" in RUNBOOKS
        assert rule["labels"]["severity"] in ("critical", "warning", "info")


def test_rules_and_dashboards_use_metrics_that_exist() -> None:
    shown = {metric.shown for metric in METRICS.values()}
    histograms = {f"{name}_bucket" for name, metric in METRICS.items() if metric.kind == "histogram"}
    for text in [*expressions().values(), *(rule["expr"] for rule in ALERTS.values())]:
        assert set(SAMPLE_NAME.findall(text)) <= shown | histograms


def test_dashboards_are_current() -> None:
    command = [sys.executable, str(ROOT / "tools" / "dashboards.py"), "--check"]
    assert subprocess.run(command, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.server
async def test_every_panel_shows_something_and_every_alert_fires_and_recovers(tmp_path: Path) -> None:
    fired: set[str] = set()

    async with Scene(tmp_path) as scene:

        async def fires(*alerts: str) -> None:
            await scene.fires(*alerts)
            fired.update(alerts)

        app = scene.app
        await app.queues.limit("slow", max_running=1)
        await app.schedule("often", "work", dt.Every("1s"))
        await app.schedule("crowded", "crawl", dt.Every("1s"), queue="slow")
        await app.schedule("hopeless", "fail", dt.Every("1s"), queue="failing")
        await app.submit("unknown", queue="unserved")
        load = asyncio.create_task(submit_all_the_time(app, scene.address("planner")))
        await fires("DuetimeDeadJobs", "DuetimeAttemptsFail", "DuetimeScheduleLate", "DuetimeQueueLag")
        await fires("DuetimeClockSkew", "DuetimeReadStoreUnused", "DuetimeLoopBlocked")
        await every_panel_shows_something(scene)

        await asyncio.to_thread(scene.redis.stop)
        await fires("DuetimeBrokerDown")
        for queue in ("default", "slow", "failing"):
            await app.queues.pause(queue)
        await fires("DuetimeThroughputCollapsed")
        load.cancel()
        await asyncio.wait([load])

        scene.kill("planner")
        await fires("DuetimeProcessDown", "DuetimeNodeDead", "DuetimeNoPlanner")
        await asyncio.to_thread(scene.postgres.stop)
        await fires("DuetimeStoreDown", "DuetimeHeartbeatUntrusted", "DuetimeLoopFailures")
        await asyncio.to_thread(scene.stop_services)
        await fires("DuetimeNotScraped")
        assert fired == set(ALERTS)

        await asyncio.to_thread(scene.postgres.start)
        await app.pause("hopeless")
        for job in await app.jobs(queue="unserved"):
            await job.cancel()
        await asyncio.to_thread(scene.start, "node")
        for queue in ("default", "failing"):
            await app.queues.resume(queue)
        await scene.fires(*ALERTS, does_not=True)


async def submit_all_the_time(app: dt.App, address: str) -> None:
    async with dt.AsyncClient(address) as client:
        for number in itertools.count():
            await client.submit("work")
            await app.submit("fail", queue="failing")
            if number % 5 == 0:
                await app.submit("block")
            await asyncio.sleep(1)


async def every_panel_shows_something(scene: Scene) -> None:
    for name, expression in expressions().items():
        query = expression.replace("$__rate_interval", "30s")
        query = re.sub(r"\$(job|queue|schedule)\b", ".*", query)

        async def has_data(query: str = query) -> bool:
            return bool(await asyncio.to_thread(scene.prometheus.query, query))

        await scene.until(has_data, f"data for {name}: {query}")


def test_faster_rules_are_rules(tmp_path: Path) -> None:
    path = tmp_path / "rules.yml"
    path.write_text(faster(RULES.read_text("utf-8")))
    assert promtool("check", "rules", path).returncode == 0
    durations = re.findall(r"(?:\[|offset |for: )(\d+)(\w)", path.read_text())
    assert {unit for _, unit in durations} == {"s"}
    assert max(int(number) for number, _ in durations) == 60
