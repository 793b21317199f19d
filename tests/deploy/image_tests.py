"""`make image-test`: the image of deploy/Dockerfile is built and started. Not part of `make test`: it takes some
minutes and needs root. Figures are printed and not asserted, except sizes and processor time."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import psycopg
import pytest

from tests.deploy.image import Builder, Container
from tests.deploy.stack import call, wait_for
from tests.servers.postgres import PostgresServer
from tests.servers.process import free_port

MEGABYTE = 1_000_000
TASKS = """
import asyncio
import duetime as dt

app = dt.App("memory://")  # the store comes from the settings

@app.task("greet")
def greet(name):
    return f"hello {name}"

@app.task("slow")
async def slow():
    await asyncio.sleep(600)
"""


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Builder]:
    folder = tmp_path_factory.mktemp("image")
    made = Builder(folder)
    started = time.monotonic()
    made.build()
    print(f"\nbuilt in {time.monotonic() - started:.0f} s")  # noqa: T201
    yield made
    shutil.rmtree(folder)  # a gigabyte


@pytest.fixture(scope="module")
def root(builder: Builder) -> Path:
    """With tasks of a user in /app, as an image of their own would have."""
    found = builder.root()
    (found / "app" / "tasks.py").write_text(TASKS)
    return found


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as started:
        yield started


def test_image_says_how_to_run_it(builder: Builder) -> None:
    config = builder.config
    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["duetime"]
    assert config["StopSignal"] == "SIGTERM"
    assert config["Labels"]["org.opencontainers.image.licenses"] == "MIT"
    assert config["Labels"]["org.opencontainers.image.revision"] == "tested"


def test_image_is_small(builder: Builder) -> None:
    whole, ours = builder.sizes()
    print(f"\nto download: {whole / MEGABYTE:.0f} MB, of which {ours / MEGABYTE:.0f} MB on top of the base")  # noqa: T201
    assert whole < 60 * MEGABYTE


def test_unpacked_image_is_small(root: Path) -> None:
    size = sum(path.lstat().st_size for path in root.rglob("*"))
    print(f"\nunpacked: {size / MEGABYTE:.0f} MB")  # noqa: T201
    assert size < 150 * MEGABYTE


def test_image_holds_no_tools_and_no_secrets(root: Path) -> None:
    programs = {path.name for path in (root / "opt/duetime/bin").iterdir()}
    assert "duetime" in programs
    assert not {"pip", "pip3"} & programs
    assert not (root / "build").exists()
    assert not (root / "usr/bin/strip").exists()
    assert (root / "data").stat().st_uid == 65532


def test_bytecode_is_in_the_image(root: Path) -> None:
    """A read-only file system cannot keep it, and compiling takes longer than the rest of a start."""
    (library,) = (root / "usr/lib").glob("python3.*")
    for folder in (library, root / "opt/duetime"):
        sources = list(folder.rglob("*.py"))
        compiled = {path.parents[1] / f"{path.name.partition('.')[0]}.py" for path in folder.rglob("*.pyc")}
        assert len(sources) > 100
        assert len(set(sources) - compiled) < 5  # some are templates, not Python


def _ready(address: str) -> bool:
    try:
        urlopen(f"{address}/readyz", timeout=5).close()
    except OSError:
        return False
    return True


def _mount_options(pid: int, point: str) -> list[str]:
    """Of the last mount at this point, as the process sees it."""
    lines = [line.split() for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines()]
    return [line[5].split(",") for line in lines if line[4] == point][-1]


def test_single_node_on_sqlite(builder: Builder, root: Path, data: Path, tmp_path: Path) -> None:
    port = str(free_port())
    node = Container(builder, root, data, tmp_path / "log", "serve", "--port", port)
    try:
        wait_for(lambda: node.has_ended or _ready(f"http://127.0.0.1:{port}"), lambda: node.output)
        assert not node.has_ended, node.output
        assert node.process.uids().real == 65532
        assert node.process.gids().real == 65532
        assert "ro" in _mount_options(node.process.pid, "/")
        assert "rw" in _mount_options(node.process.pid, "/data")
        assert node.stop() == 0, node.output
    finally:
        node.close()
    assert sqlite3.connect(data / "duetime.db").execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_fleet_on_postgresql_runs_and_gives_back(
    builder: Builder, root: Path, data: Path, tmp_path: Path, server: PostgresServer
) -> None:
    port = str(free_port())
    address = f"http://127.0.0.1:{port}"
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE image")
    (data / "duetime.toml").write_text(f'store = "{server.url("image")}"\nsecret_keys = "k1:{"A" * 43}="\n')
    settings = {"DUETIME_CONFIG": "/data/duetime.toml", "DUETIME_APP": "tasks:app", "DUETIME_GRACE": "1s"}

    def container(*words: str) -> Container:
        return Container(builder, root, data, tmp_path / f"log-{words[0]}", *words, **settings)

    started = time.monotonic()
    node = container("serve", "--migrate", "--port", port)
    try:
        wait_for(lambda: node.has_ended or _ready(address), lambda: node.output)
        assert not node.has_ended, node.output
        took, used = time.monotonic() - started, sum(node.process.cpu_times()[:2])
        print(f"\nready on an empty PostgreSQL in {took:.1f} s, of which {used:.1f} s of processor time")  # noqa: T201
        assert used < 4  # seconds; the other figure depends on what else this machine does
        made = container("key", "create", "ops", "--scopes", "admin", "--json")
        assert made.wait() == 0, made.output
        key = json.JSONDecoder().raw_decode(made.output)[0]["key"]
        _, job = call(
            address,
            "/api/v1/jobs",
            key,
            {"target": {"type": "task", "name": "greet"}, "payload": {"name": "you"}},
        )
        _, slow = call(address, "/api/v1/jobs", key, {"target": {"type": "task", "name": "slow"}})
        wait_for(lambda: call(address, f"/api/v1/jobs/{job['id']}", key)[1]["result"] == "hello you")
        wait_for(lambda: call(address, f"/api/v1/jobs/{slow['id']}", key)[1]["state"] == "running")
        started = time.monotonic()
        assert node.stop() == 0, node.output
        print(f"\nstopped in {time.monotonic() - started:.1f} s, with a grace time of 1 s")  # noqa: T201
    finally:
        node.close()
    with psycopg.connect(server.url("image")) as connection:
        (row,) = connection.execute("SELECT state::text, failures FROM duetime.jobs").fetchall()
    assert row == ("pending", 0)
