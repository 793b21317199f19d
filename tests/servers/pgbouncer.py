"""PgBouncer in front of a PostgreSQL server, pooling by transaction. Independent of pytest."""

from __future__ import annotations

import atexit
import shutil
import signal
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.servers.debian import program
from tests.servers.patroni import PatroniServer
from tests.servers.postgres import PostgresServer
from tests.servers.process import ServerProcess, free_port, give

READY = "process up"


class PgBouncer:
    """Offers every database of `server` under its own name. `with PgBouncer(server) as pool:`, then
    `pool.url(database)`."""

    def __init__(
        self, server: PostgresServer | PatroniServer, *, settings: Mapping[str, str] | None = None
    ) -> None:
        self.port = free_port()
        self._server = server
        self._settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": str(self.port),
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": "users.txt",
            "admin_users": "postgres",
            "pool_mode": "transaction",
            "default_pool_size": "4",
            "max_client_conn": "200",
            **(settings or {}),
        }
        self._folder: Path | None = None
        self._process: ServerProcess | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def log(self) -> str:
        return self._process.log if self._process else ""

    def start(self) -> None:
        """Start and wait until connections are accepted."""
        found = program("pgbouncer", "pgbouncer")
        self._folder = self._write_configuration()
        atexit.register(self.close)
        self._process = ServerProcess([found.path, "pgbouncer.ini"], READY, self._folder, found.environment)
        self._process.wait_ready()

    def close(self) -> None:
        """Stop immediately and remove the configuration. May be called again."""
        atexit.unregister(self.close)
        if self._process:
            self._process.end(signal.SIGTERM)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def _write_configuration(self) -> Path:
        folder = Path(tempfile.mkdtemp(prefix="duetime-pgbouncer-"))
        give(folder)
        settings = "\n".join(f"{name} = {value}" for name, value in self._settings.items())
        databases = f"* = host=127.0.0.1 port={self._server.port} user=postgres"
        (folder / "pgbouncer.ini").write_text(f"[databases]\n{databases}\n\n[pgbouncer]\n{settings}\n")
        (folder / "users.txt").write_text('"postgres" ""\n')
        return folder
