"""PostgreSQL with automatic failover: two servers, each with its Patroni, and one etcd. Independent of pytest.

Replication is synchronous: the primary confirms a commit after the standby has it on disk."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import signal
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import psycopg

from tests.servers.debian import unpacked
from tests.servers.etcd import EtcdServer
from tests.servers.postgres import DURABLE, binaries
from tests.servers.process import TIMEOUT, ServerFailed, ServerProcess, free_port, give

SCOPE = "duetime"
POLL = 0.05  # seconds
# Seconds. Patroni's own default is 30; in its manual the least is 20.
TTL = 20
REPLICATION = {"username": "replicator", "password": "replicator"}
PARAMETERS = {
    **DURABLE,
    "max_connections": 200,
    "timezone": "UTC",
    "unix_socket_directories": "",
    "wal_keep_size": "256MB",
    "log_min_messages": "warning",
}


class PatroniServer:
    """One PostgreSQL server and the Patroni that starts, stops and promotes it."""

    def __init__(self, name: str, etcd: EtcdServer, folder: Path, ttl: int) -> None:
        self.name = name
        self.port, self.rest_port = free_port(), free_port()
        self._folder = folder / name
        self._folder.mkdir()
        give(self._folder)
        self._configuration = self._folder / "patroni.json"  # JSON is YAML, too
        self._configuration.write_text(json.dumps(self._settings(etcd, ttl)))
        give(self._configuration)
        self._process: ServerProcess | None = None

    def start(self) -> None:
        """Does not wait: the second server waits for the first."""
        program = unpacked("patroni", "patroni")
        packages = program.path.parents[1] / "lib" / "python3" / "dist-packages"
        # Patroni runs on Debian's Python, which the unprivileged account can read.
        environment = {**program.environment, "PYTHONPATH": str(packages), "HOME": str(self._folder)}
        self._process = ServerProcess([program.path, self._configuration], "\n", self._folder, environment)

    def kill(self) -> None:
        """As if the machine lost its power: Patroni and every process of PostgreSQL get SIGKILL."""
        if self._process is None:
            return
        if self._process.is_running:
            os.kill(self._process.pid, signal.SIGKILL)
        for process in self._postgres_processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.end(signal.SIGKILL)
        self._process = None

    @property
    def log(self) -> str:
        return self._process.log if self._process else ""

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def get(self, path: str, body: object = None) -> tuple[int, str]:
        """Patroni's answer: status and text."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.rest_port}/{path}", data)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def is_primary(self) -> bool:
        return self.get("primary")[0] == 200

    def is_synchronous(self) -> bool:
        """Whether this is a standby that confirms the commits of the primary, and may take its place."""
        return not self.is_primary() and self.get("synchronous")[0] == 200

    def _postgres_processes(self) -> Iterator[psutil.Process]:
        with contextlib.suppress(OSError, psutil.NoSuchProcess):
            lines = (self._folder / "data" / "postmaster.pid").read_text().splitlines()
            postmaster = psutil.Process(int(lines[0]))
            if "postgres" in postmaster.name():
                postmaster.suspend()  # it must not replace children that are killed
                yield from postmaster.children(recursive=True)
                yield postmaster

    def _settings(self, etcd: EtcdServer, ttl: int) -> dict[str, Any]:
        own = {"listen": f"127.0.0.1:{self.port}", "connect_address": f"127.0.0.1:{self.port}"}
        rest = {"listen": f"127.0.0.1:{self.rest_port}", "connect_address": f"127.0.0.1:{self.rest_port}"}
        access = ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
        return {
            "scope": SCOPE,
            "name": self.name,
            "restapi": rest,
            "etcd3": {"host": etcd.endpoint},
            "bootstrap": {
                "dcs": {
                    "ttl": ttl,
                    "loop_wait": max(1, ttl // 10),
                    "retry_timeout": max(2, ttl // 4),
                    "synchronous_mode": True,
                    "postgresql": {"use_pg_rewind": True, "parameters": PARAMETERS},
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "no-sync"],
            },
            "postgresql": {
                **own,
                "data_dir": str(self._folder / "data"),
                "bin_dir": str(binaries()),
                "pgpass": str(self._folder / "pgpass"),
                "pg_hba": access,
                "basebackup": [{"checkpoint": "fast"}],
                "authentication": {
                    "superuser": {"username": "postgres"},
                    "replication": REPLICATION,
                },
            },
        }


class PatroniCluster:
    """`with PatroniCluster() as cluster:`, then `cluster.create_database("name")`, whose URL names both
    servers. The standby follows later: `wait_synchronous`."""

    def __init__(self, ttl: int = TTL) -> None:
        self.ttl = ttl
        self._etcd = EtcdServer()
        self._folder: Path | None = None
        self.servers: list[PatroniServer] = []

    def __enter__(self) -> Self:
        atexit.register(self.close)
        self._etcd.start()
        self._folder = Path(tempfile.mkdtemp(prefix="duetime-patroni-"))
        give(self._folder)
        for name in ("one", "two"):
            self.servers.append(PatroniServer(name, self._etcd, self._folder, self.ttl))
            self.servers[-1].start()
        self.wait_primary()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """May be called again."""
        atexit.unregister(self.close)
        for server in self.servers:
            server.kill()
        self.stop_etcd()  # an orderly end takes seconds
        self._etcd.close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    @property
    def primary(self) -> PatroniServer:
        return next(server for server in self.servers if server.is_primary())

    @property
    def standby(self) -> PatroniServer:
        return next(server for server in self.servers if not server.is_primary())

    def url(self, database: str) -> str:
        hosts = ",".join(f"127.0.0.1:{server.port}" for server in self.servers)
        return f"postgresql://postgres@{hosts}/{database}?target_session_attrs=read-write"

    def create_database(self, name: str) -> str:
        with psycopg.connect(self.primary.url(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def switch_over(self) -> PatroniServer:
        """The planned change of roles. Returns the new primary after Patroni has promoted it."""
        old, new = self.primary, self.standby
        status, text = old.get("switchover", {"leader": old.name, "candidate": new.name})
        if status != 200:
            raise ServerFailed(f"no switchover: {status} {text}\n{old.log}")
        return new

    def stop_etcd(self) -> None:
        self._etcd.stop(signal.SIGKILL)

    def start_etcd(self) -> None:
        self._etcd.start()

    def wait_primary(self, *servers: PatroniServer) -> PatroniServer:
        """Wait until one of these servers (all, if none is given) accepts writes."""
        deadline = time.monotonic() + TIMEOUT + self.ttl
        while time.monotonic() < deadline:
            for server in servers or self.servers:
                if server.is_primary():
                    return server
            time.sleep(POLL)
        raise ServerFailed(f"no primary\n{self.logs()}")

    def wait_synchronous(self) -> None:
        """Wait until there is a primary with a standby that confirms its commits."""
        deadline = time.monotonic() + 2 * TIMEOUT
        while not any(server.is_synchronous() for server in self.servers):
            if time.monotonic() > deadline:
                raise ServerFailed(f"no synchronous standby\n{self.logs()}")
            time.sleep(POLL)

    def logs(self) -> str:
        return "\n".join(f"--- {server.name}\n{server.log}" for server in self.servers)
