"""What the Helm chart starts, as processes of this machine: the init container, the probes while the store is gone,
and the query of the autoscaler, asked of a real Prometheus."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import urlopen

import pytest

import duetime as dt
from tests.deploy.stack import BIN, TIMEOUT, wait_for
from tests.deploy.test_chart import objects, pods
from tests.servers.debian import unpacked
from tests.servers.postgres import PostgresServer
from tests.servers.process import free_port

pytestmark = [pytest.mark.slow, pytest.mark.server]
TASKS = """
import asyncio
import duetime as dt

app = dt.App("memory://")  # the store comes from the settings

@app.task("slow")
async def slow():
    await asyncio.sleep(600)
"""


class Pods:
    """Containers of the chart with the values `keda`, on a store of this machine."""

    def __init__(self, folder: Path, store: str, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._file = folder / "duetime.toml"
        self._file.write_text(f'store = "{store}"\n')
        (folder / "tasks.py").write_text(TASKS)
        self.specs = {name: pod["spec"] for name, pod in pods("keda")}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.ports: dict[str, int] = {}

    def migrate(self, name: str) -> int:
        (container,) = self.specs[name]["initContainers"]
        return subprocess.run(
            [str(BIN / "duetime"), *container["args"]], check=False, **self._where(container)
        ).returncode

    def start(self, name: str, *more: str) -> None:
        (container,) = self.specs[name]["containers"]
        self.ports[name] = free_port()
        words = [word if word != "8080" else str(self.ports[name]) for word in container["args"]]
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(BIN / "duetime"), *words, *more],
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._where(container),
            )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        self.processes[name] = process

    def probe(self, name: str, kind: str) -> int:
        """The status that the probe gets; 0 if nothing answers."""
        (container,) = self.specs[name]["containers"]
        path = container[kind]["httpGet"]["path"]
        try:
            with urlopen(
                f"http://127.0.0.1:{self.ports[name]}{path}", timeout=container[kind]["timeoutSeconds"]
            ) as answer:
                return int(answer.status)
        except HTTPError as refused:
            refused.close()
            return refused.code
        except OSError:
            return 0

    def _where(self, container: dict[str, Any]) -> dict[str, Any]:
        settings = {
            one["name"]: one["value"].replace("/etc/duetime/duetime.toml", str(self._file))
            for one in container["env"]
        }
        own = {name: value for name, value in os.environ.items() if not name.startswith("DUETIME_")}
        path = os.pathsep.join([str(self._folder), *sys.path])
        return {
            "cwd": self._folder,
            "env": {**own, **settings, "PYTHONPATH": path, "DUETIME_GRACE": "1s"},
            "stdin": subprocess.DEVNULL,
        }


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as started:
        yield started


def test_outage_of_the_store_restarts_no_pod(tmp_path: Path, stack: ExitStack) -> None:
    server = stack.enter_context(PostgresServer(durable=True))
    fleet = Pods(tmp_path, server.create_database("chart"), stack)
    assert fleet.migrate("duetime-api") == 0
    assert fleet.migrate("duetime-planner") == 0  # the second finds nothing to do
    names = ("duetime-api", "duetime-planner")
    for name in names:
        fleet.start(name)
    for name in names:
        wait_for(lambda name=name: fleet.probe(name, "readinessProbe") == 200)
    server.crash()
    for name in names:
        wait_for(lambda name=name: fleet.probe(name, "readinessProbe") == 503)
        assert fleet.probe(name, "livenessProbe") == 200
        assert fleet.probe(name, "startupProbe") == 200
    server.start()
    for name in names:
        wait_for(lambda name=name: fleet.probe(name, "readinessProbe") == 200)
        fleet.processes[name].terminate()
    assert [fleet.processes[name].wait(TIMEOUT) for name in names] == [0, 0]


def test_query_of_the_autoscaler_counts_each_job_once(tmp_path: Path, stack: ExitStack) -> None:
    """Two processes report the same fleet: 2 jobs run, 3 are due, 1 is due later."""
    server = stack.enter_context(PostgresServer())
    store = server.create_database("chart")
    fleet = Pods(tmp_path, store, stack)
    assert fleet.migrate("duetime-worker-default") == 0
    fleet.start("duetime-api")
    fleet.start("duetime-worker-default", "--app", "tasks:app", "--concurrency", "2")
    app = dt.App(store)
    app.sync.submit_many([dt.NewJob("slow")] * 5 + [dt.NewJob("slow", delay="1h")])
    app.sync.close()
    (scaler,) = (
        one
        for one in objects("keda")
        if one["metadata"]["name"] == "duetime-worker-default" and one["kind"] == "ScaledObject"
    )
    query = scaler["spec"]["triggers"][0]["metadata"]["query"]
    ask = _prometheus(tmp_path, [fleet.ports[name] for name in fleet.processes], stack)
    wait_for(lambda: ask("count(duetime_jobs{state='running'})") == 2)  # both processes are scraped
    wait_for(lambda: ask(query) == 5, lambda: f"{query} is {ask(query)}")


def _prometheus(folder: Path, ports: list[int], stack: ExitStack) -> Any:
    """Scrapes these ports each second, as the ServiceMonitor would. The value answers a query."""
    program, port = unpacked("prometheus", "prometheus"), free_port()
    targets = [f"127.0.0.1:{one}" for one in ports]
    scrape = {
        "job_name": "duetime",
        "scrape_interval": "1s",
        "static_configs": [{"targets": targets, "labels": {"namespace": "duetime"}}],
    }
    (folder / "prometheus.json").write_text(json.dumps({"scrape_configs": [scrape]}))
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [str(program.path), f"--config.file={folder / 'prometheus.json'}", f"--storage.tsdb.path={folder / 'metrics'}",
             f"--web.listen-address=127.0.0.1:{port}"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            env={**os.environ, **program.environment},
        )  # fmt: skip
    stack.callback(process.wait)
    stack.callback(process.kill)

    def ask(query: str) -> float | None:
        try:
            with urlopen(
                f"http://127.0.0.1:{port}/api/v1/query?query={quote(query)}", timeout=TIMEOUT
            ) as answer:
                found = json.load(answer)["data"]["result"]
        except OSError:
            return None
        return float(found[0]["value"][1]) if found else None

    return ask
