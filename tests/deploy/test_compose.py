"""deploy/compose.yaml: by the schema of the specification, and every profile as processes of this machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from duetime.config import TABLE
from tests.deploy.stack import (
    BIN,
    DEPLOY,
    ROOT,
    Stack,
    call,
    composition,
    image_environment,
    seconds,
    services,
    wait_for,
)
from tests.servers.brokers import RabbitServer
from tests.servers.postgres import PostgresServer
from tests.servers.process import free_port

TASKS = """
import time
import duetime as dt

app = dt.App("memory://")  # the store comes from the settings

@app.task("greet")
def greet(name):
    return f"hello {name}"

@app.task("slow")
async def slow():
    import asyncio
    await asyncio.sleep(600)
"""


def test_file_is_a_compose_file() -> None:
    command = [
        str(BIN / "check-jsonschema"),
        "--builtin-schema",
        "vendor.compose-spec",
        str(DEPLOY / "compose.yaml"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("profile", ["single", "scale", "fleet", "test"])
def test_every_profile_is_complete(profile: str) -> None:
    found = services(profile)
    nodes = [one for one in found.values() if "duetime" in one["image"] and "entrypoint" not in one]
    assert nodes
    for one in nodes:
        assert one["read_only"] is True
        assert one["cap_drop"] == ["ALL"]
        wait = seconds(one["environment"]["DUETIME_GRACE"]) + seconds(
            one["environment"].get("DUETIME_STOP_DELAY", "0s")
        )
        assert seconds(one["stop_grace_period"]) >= wait + 10
        assert "readyz" in " ".join(one["healthcheck"]["test"])
        assert {name.removeprefix("DUETIME_").lower() for name in one["environment"]} <= {*TABLE, "config"}
        assert set(one.get("depends_on", ())) <= set(found)
    published = [port for one in found.values() for port in one.get("ports", ())]
    assert published == ["${PUBLISH:-127.0.0.1}:${PORT:-8080}:8080"]


def test_secrets_are_files() -> None:
    """Passwords are in no environment; each address of a server is in a file of deploy/secrets."""
    for one in composition()["services"].values():
        for name, value in one.get("environment", {}).items():
            assert "://" not in str(value)
            assert name.endswith("_FILE") or not re.search("PASS|SECRET|TOKEN|STORE|QUEUE$", name)
    assert all(one["file"].startswith("./secrets/") for one in composition()["secrets"].values())


def test_generated_secrets_are_random_and_kept(tmp_path: Path) -> None:
    def generate(folder: Path) -> dict[str, str]:
        run = subprocess.run(
            [str(DEPLOY / "run"), "secrets"],
            env={"SECRETS": str(folder), "PATH": "/usr/bin:/bin"},
            check=False,
        )
        assert run.returncode == 0
        return {path.name: path.read_text() for path in folder.iterdir()}

    first, again, other = generate(tmp_path / "a"), generate(tmp_path / "a"), generate(tmp_path / "b")
    assert first == again
    assert set(first) == {"fleet.toml", "postgres_password", "rabbitmq.conf", "scale.toml"}
    assert all(first[name] != other[name] for name in first)
    assert first["postgres_password"] in first["fleet.toml"]
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("word", ["start", "logs", "stop", "key"])
def test_missing_docker_is_one_line(word: str, tmp_path: Path) -> None:
    for name in ("sh", "dirname", "head", "base64", "tr"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    done = subprocess.run(
        [str(DEPLOY / "run"), word], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("deploy: neither `docker compose` nor `podman compose`")
    assert done.stderr.count("\n") == 1


def test_makefile_has_the_targets() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    for target in ("start", "start-scale", "start-fleet", "start-test", "logs", "stop", "key"):
        assert re.search(rf"^{target}:.*## ", text, re.MULTILINE), target


def test_image_requires_keys() -> None:
    assert image_environment() == {"DUETIME_HOST": "0.0.0.0", "DUETIME_AUTH": "keys"}


@pytest.mark.slow
def test_single_starts_and_stops(tmp_path: Path) -> None:
    with Stack("single", tmp_path) as stack:
        (node,) = stack.start_healthy("duetime")
        assert node.duetime("key", "list", "--json").split() == ["[]"]  # so deploy/run makes one
        key = node.duetime("key", "create", "ops", "--scopes", "admin").strip()
        assert call(node.address, "/api/v1/jobs", "wrong")[0] == 401
        private = {"target": {"type": "http", "url": f"{node.address}/healthz"}}
        assert call(node.address, "/api/v1/jobs", key, private)[1]["code"] == "target_not_allowed"
        assert (
            call(node.address, "/api/v1/jobs", key, {"target": {"type": "task", "name": "later"}})[0] == 201
        )
        assert node.stop() == 0
        assert (node.folder / "duetime.db").exists()  # in the volume


@pytest.mark.slow
def test_profile_test_calls_the_mock_agent(tmp_path: Path) -> None:
    with Stack("test", tmp_path) as stack:
        port = str(free_port())
        stack.ports["mock-agent:1"] = port
        (agent,) = stack.start_healthy("mock-agent")
        stack.known = {"mock-agent": "localhost", "5678": port}
        (node,) = stack.start_healthy("duetime-test")
        key = node.duetime("key", "create", "ops", "--scopes", "admin").strip()
        # As the seed's own route does it, and as ours.
        target = {"type": "http", "url": f"http://localhost:{port}/hello"}
        status, job = call(node.address, "/api/v1/jobs", key, {"target": target, "payload": {"n": 1}})
        assert status == 201, job
        wait_for(lambda: call(node.address, f"/api/v1/jobs/{job['id']}", key)[1]["state"] == "succeeded")
        assert job["id"] in agent.output
        assert node.stop() == 0
        assert agent.stop() == 0


def _postgres(stack: Stack, server: PostgresServer) -> None:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE ROLE duetime LOGIN")
        connection.execute("CREATE DATABASE duetime OWNER duetime")
    port = re.search(r":(\d+)/", server.url())
    assert port is not None
    stack.known["@postgres:5432"] = f"@127.0.0.1:{port[1]}"


class Requests:
    """Submits jobs one after another, from several threads, until the block ends."""

    def __init__(self, address: str, key: str) -> None:
        self._address, self._key = address, key
        self._ended = threading.Event()
        self._pool = ThreadPoolExecutor(3)
        self.statuses: list[int] = []

    def __enter__(self) -> Requests:
        self._running = [self._pool.submit(self._run) for _ in range(3)]
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._pool.shutdown()
        for one in self._running:
            one.result()

    def _run(self) -> None:
        body = {"target": {"type": "task", "name": "later"}, "delay": "1h"}
        while not self._ended.is_set():
            self.statuses.append(call(self._address, "/api/v1/jobs", self._key, body)[0])

    def wait_for_more(self, count: int) -> None:
        wanted = len(self.statuses) + count
        wait_for(lambda: len(self.statuses) >= wanted)


@pytest.mark.slow
@pytest.mark.server
def test_scale_loses_no_request_while_nodes_are_replaced(tmp_path: Path) -> None:
    with PostgresServer() as server, Stack("scale", tmp_path) as stack:
        _postgres(stack, server)
        first, second = stack.start_healthy("duetime-1", "duetime-2")
        proxy = stack.start_proxy(first, second)
        key = first.duetime("key", "create", "ops", "--scopes", "admin").strip()

        wait_for(lambda: _reachable(proxy))
        with Requests(proxy, key) as requests:
            requests.wait_for_more(20)
            first.process.terminate()
            while first.process.poll() is None:
                requests.wait_for_more(1)
            assert first.process.returncode == 0
            assert "not ready, for proxies to see" in first.output
            (again,) = stack.start_healthy("duetime-1")
            requests.wait_for_more(20)
            assert second.stop() == 0  # the proxy has seen that the first one is back
            requests.wait_for_more(20)
        assert set(requests.statuses) == {201}
        stored = call(again.address, "/api/v1/stats", key)[1]["live"]["pending"]
        assert stored == len(requests.statuses)
        assert again.stop() == 0


def _reachable(address: str) -> bool:
    try:
        return call(address, "/readyz", "")[0] == 200
    except OSError:
        return False


@pytest.mark.slow
@pytest.mark.server
def test_fleet_runs_jobs_and_gives_them_back(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "tasks.py").write_text(TASKS)
    extra = {
        "DUETIME_APP": "tasks:app",
        "PYTHONPATH": f"{tmp_path / 'code'}:{':'.join(sys.path)}",
        "DUETIME_GRACE": "1s",
    }
    with PostgresServer() as server, RabbitServer() as broker, Stack("fleet", tmp_path, **extra) as stack:
        _postgres(stack, server)
        own = re.search(r'queue = "(.*)"', stack.secret("fleet.toml"))
        assert own is not None
        stack.known[own[1]] = broker.url
        (api,) = stack.start_healthy("api")
        started = stack.start_healthy("planner", "worker")
        assert len(started) == 5
        key = api.duetime("key", "create", "ops", "--scopes", "admin").strip()
        _, job = call(
            api.address,
            "/api/v1/jobs",
            key,
            {"target": {"type": "task", "name": "greet"}, "payload": {"name": "you"}},
        )
        _, slow = call(api.address, "/api/v1/jobs", key, {"target": {"type": "task", "name": "slow"}})
        wait_for(lambda: call(api.address, f"/api/v1/jobs/{job['id']}", key)[1]["result"] == "hello you")
        wait_for(lambda: call(api.address, f"/api/v1/jobs/{slow['id']}", key)[1]["state"] == "running")
        nodes = call(api.address, "/api/v1/nodes", key)[1]["items"]
        assert sorted(node["roles"] for node in nodes) == [["planner", "dispatcher"]] * 2 + [["worker"]] * 3
        assert [one.stop() for one in started] == [0] * 5
        found = call(api.address, f"/api/v1/jobs/{slow['id']}", key)[1]
        assert (found["state"], found["failures"]) == ("pending", 0)
        assert api.stop() == 0
