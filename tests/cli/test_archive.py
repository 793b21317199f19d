"""Old jobs move to files: none is lost or doubled, wherever the process dies. The files are read with the
standard library alone, as another program would."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import boto3  # type: ignore[import-untyped]
import pytest

import duetime as dt
from duetime.archives import archive_for
from duetime.engine.plan import archiver
from duetime.engine.plan.archiver import LOCK, PART, Archiver
from duetime.errors import ArchiveUnavailable, Conflict
from duetime.model.history import KeepRules
from duetime.model.job import JobFilter, State
from duetime.stores import from_url
from duetime.stores.memory import MemoryStore
from duetime.testing.conformance.drafts import DAY, HOUR, TENANT, add, finished, job, joined
from tests.cli.conftest import Duetime
from tests.cli.node import COMMAND
from tests.servers.brokers import MotoServer

STEPS = ("before_file", "after_file", "after_manifest", "after_forget")
Read = Callable[[], dict[str, bytes]]


def fill(url: str, count: int = 5) -> tuple[set[str], set[str]]:
    """Jobs that ended 40 and 41 days ago, one dead letter among them; and some that stay. Returns the ids of
    both."""

    async def write() -> tuple[set[str], set[str]]:
        store = from_url(url)
        await store.migrate()
        await store.open()
        node, now = await joined(store), await store.time()
        old = [
            await finished(store, node, job(now - 50 * DAY), now - (40 + number % 2) * DAY)
            for number in range(count)
        ]
        old.append(await finished(store, node, job(now - 50 * DAY), now - 40 * DAY, State.DEAD))
        kept = [
            await finished(store, node, job(now - 50 * DAY), now - DAY),
            await add(store, job(now + HOUR)),
        ]
        await store.leave(node)
        await store.close()
        return {str(one.id) for one in old}, {str(one.id) for one in kept}

    return asyncio.run(write())


def ids_in(url: str, *, unlock: bool = False) -> set[str]:
    async def read() -> set[str]:
        store = from_url(url)
        await store.open()
        found = {str(one.id) for one in await store.list_jobs(JobFilter(TENANT), 1_000)}
        if unlock:  # as if the two minutes of a killed run were over
            await store.put_record(*LOCK, None)
        await store.close()
        return found

    return asyncio.run(read())


def jobs_in(files: dict[str, bytes]) -> list[dict[str, Any]]:
    """Of all files with a manifest, each compared with it."""
    found: list[dict[str, Any]] = []
    for name, data in files.items():
        if name.startswith("manifests/"):
            manifest = json.loads(data)
            content = files[manifest["file"]]
            assert hashlib.sha256(content).hexdigest() == manifest["sha256"]
            assert len(content) == manifest["bytes"]
            lines = [json.loads(line) for line in gzip.decompress(content).splitlines()]
            assert len(lines) == manifest["rows"]
            assert {line["finished_at"][:10] for line in lines} == {manifest["day"]}
            found += lines
    return found


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with MotoServer() as server:
        with urlopen(Request(f"{server.endpoint}/history", method="PUT"), timeout=60) as answer:
            assert answer.status == 200
        yield server.endpoint


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Read]:
    """An archive, and how to read all of it."""
    if request.param == "folder":
        (folder / "archive").mkdir()
        return "archive", lambda: files_of(folder / "archive")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    endpoint = request.getfixturevalue("s3")
    return f"s3://history/{folder.name}?endpoint={endpoint}", lambda: _objects(endpoint, folder.name)


def _objects(endpoint: str, prefix: str) -> dict[str, bytes]:
    """With another client than the one that wrote them."""
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    listed = client.list_objects_v2(Bucket="history", Prefix=f"{prefix}/").get("Contents", [])
    return {
        one["Key"].removeprefix(f"{prefix}/"): client.get_object(Bucket="history", Key=one["Key"])[
            "Body"
        ].read()
        for one in listed
    }


def test_old_jobs_move_to_files(duetime: Duetime, folder: Path, place: tuple[str, Read]) -> None:
    to, read = place
    old, kept = fill("sqlite:///duetime.db")
    done = duetime("archive", "--to", to, "--json")
    assert done.status == 0, done.err
    assert (done.json["jobs"], done.json["parts"]) == (6, 2)
    assert ids_in("sqlite:///duetime.db") == kept
    found = jobs_in(read())
    assert sorted(one["id"] for one in found) == sorted(old)
    [dead] = [one for one in found if one["state"] == "dead"]
    assert len(dead["attempts"]) == 1
    assert dead["target"]["type"] == "task"
    again = duetime("archive", "--to", to)
    assert again.out == "0 jobs moved to 0 files, 0 bytes\n"


@pytest.mark.parametrize("step", STEPS)
def test_killed_run_is_continued(duetime: Duetime, folder: Path, place: tuple[str, Read], step: str) -> None:
    """No job is lost and none is in the archive twice."""
    to, read = place
    url = "sqlite:///duetime.db"
    old, kept = fill(url)
    killed = subprocess.run(
        [COMMAND, "archive", "--to", to], cwd=folder, check=False, capture_output=True,
        env={**os.environ, "DUETIME_FAILPOINTS": f"archive.{step}=kill"},
    )  # fmt: skip
    assert killed.returncode == -9, killed.stderr
    left = ids_in(url)
    assert old | kept == left | {one["id"] for one in jobs_in(read())}
    busy = duetime("archive", "--to", to)
    assert (busy.status, "another process archives" in busy.err) == (1, True)
    ids_in(url, unlock=True)
    assert duetime("archive", "--to", to).status == 0
    assert ids_in(url) == kept
    assert sorted(one["id"] for one in jobs_in(read())) == sorted(old)


class Broken:
    """A place that loses or changes what it was given."""

    def __init__(self, answer: bytes | None) -> None:
        self._answer = answer

    async def create(self, name: str, data: bytes) -> None:
        return None

    async def read(self, name: str) -> bytes | None:
        return self._answer


@pytest.mark.parametrize("answer", [None, b"", b"other"], ids=["lost", "empty", "changed"])
async def test_nothing_is_deleted_if_the_copy_cannot_be_read(answer: bytes | None) -> None:
    store = MemoryStore()
    node, now = await joined(store), await store.time()
    old = await finished(store, node, job(now - 50 * DAY), now - 40 * DAY)
    with pytest.raises(ArchiveUnavailable):
        await Archiver(store, archive_for(Broken(answer)), KeepRules(30 * DAY)).run()
    assert await store.get_job(TENANT, old.id) is not None
    assert await store.get_record(*LOCK) is None
    with pytest.raises(
        Conflict, match="interrupted"
    ):  # without the place, its part is not known to be complete
        await Archiver(store, None, KeepRules(30 * DAY)).run()
    assert await store.get_record(*PART) is not None


async def test_rules_by_queue_task_and_state() -> None:
    store = MemoryStore()
    node, now = await joined(store), await store.time()

    async def ended(state: State = State.SUCCEEDED, **changes: Any) -> str:
        return str((await finished(store, node, job(now - 50 * DAY, **changes), now - 10 * DAY, state)).id)

    kept = {await ended(queue="billing"), await ended(State.DEAD)}
    await ended()
    await ended(State.DEAD, queue="short")
    await ended(target="quick", queue="billing")
    rules = KeepRules(5 * DAY, 20 * DAY, {"billing": 30 * DAY, "short": DAY}, {"quick": HOUR})
    done = await Archiver(store, None, rules).run()
    kept_dead = {str(one.id) for one in await store.list_jobs(JobFilter(TENANT), 10)}
    assert kept < kept_dead  # dead letters stay for 20 days in every queue
    assert (done.jobs, len(kept_dead), done.oldest) == (2, 3, now - 10 * DAY)


async def test_leader_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url, folder = f"sqlite:///{tmp_path}/duetime.db", tmp_path / "archive"
    folder.mkdir()
    old, _ = await asyncio.to_thread(fill, url)
    monkeypatch.setattr(archiver, "MAX_PART", 2)
    monkeypatch.setattr(archiver, "PAGE", 2)
    app = dt.App(url)
    async with app.running(archive=folder, retention="30d", keep_failed="35d"):
        async with asyncio.timeout(60):
            while len(jobs_in(files_of(folder))) < len(old):
                await asyncio.sleep(0.05)
    found = [one["id"] for one in jobs_in(files_of(folder))]
    assert sorted(found) == sorted(old)


def test_unknown_places_are_refused(duetime: Duetime, folder: Path) -> None:
    assert duetime("migrate").status == 0
    for to, words in (
        ("missing", "there is no folder"),
        ("ftp://host/x", "s3://bucket/prefix"),
        ("s3://bucket/x?region=eu", "no option 'region'"),
    ):
        refused = duetime("archive", "--to", to)
        assert (refused.status, words in refused.err) == (2, True), refused.err
    assert duetime("archive").status == 2
