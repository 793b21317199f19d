"""The service of a test, with API calls that prepare data and check the effect of the UI."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2 as httpx

from tests.servers.service import TIMEOUT, Service

ROOT = Path(__file__).resolve().parents[2]
TASKS = "tests.ui.tasks:app"


class Site:
    """`duetime serve` on a SQLite file; `restart` starts it again on the same port."""

    def __init__(self, folder: Path, *options: str, app: str = TASKS, code: Path = ROOT) -> None:
        """`code`: the folder of the module of the app."""
        self._folder = folder
        self._options = ("--app", app, "--migrate", *options)
        self._code = code
        self._starts = 0
        self._service = self._start("--port", "0")
        self.address = self._service.address

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def store(self) -> str:
        return f"sqlite:///{self._folder / 'duetime.db'}"

    @property
    def ui(self) -> str:
        return f"{self.address}/ui"

    def stop(self) -> None:
        self._service.__exit__()

    def restart(self) -> None:
        self._service = self._start("--port", self.address.rpartition(":")[2])

    def _start(self, *options: str) -> Service:
        self._starts += 1
        environment = {
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(self._code)])
        }  # the code of this checkout
        return Service(
            self.store,
            self._folder / f"serve-{self._starts}.log",
            *self._options,
            *options,
            environment=environment,
        )

    def request(self, method: str, path: str, body: Any = None, key: str | None = None) -> Any:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        response = httpx.request(
            method, f"{self.address}/api/v1{path}", json=body, headers=headers, timeout=TIMEOUT
        )
        assert response.is_success, response.text
        return response.json() if response.content else None

    def rename_nodes(self, name: str) -> None:
        """A node is named after its host, and a host may have any name."""
        with closing(sqlite3.connect(self.store.removeprefix("sqlite:///"))) as database, database:
            assert database.execute("UPDATE nodes SET name = ?", (name,)).rowcount

    def add_schedule(self, name: str, **fields: Any) -> Any:
        body = {
            "name": name,
            "when": {"cron": "0 4 1 1 *", "tz": "Europe/Berlin"},
            "target": {"type": "task", "name": "greet"},
            **fields,
        }
        return self.request("POST", "/schedules", body)

    def submit(self, task: str, **fields: Any) -> str:
        job_id: str = self.request("POST", "/jobs", {"target": {"type": "task", "name": task}, **fields})[
            "id"
        ]
        return job_id
