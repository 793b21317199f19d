"""PgBouncer in front of a PostgreSQL server, pooling by transaction. Independent of pytest."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path

from tests.servers.debian import program
from tests.servers.patroni import PatroniServer
from tests.servers.postgres import PostgresServer
from tests.servers.process import Server, ServerProcess

READY = "process up"


class PgBouncer(Server):
    """Offers every database of `server` under its own name. `with PgBouncer(server) as pool:`, then
    `pool.url(database)`."""

    kind = "pgbouncer"

    def __init__(
        self, server: PostgresServer | PatroniServer, *, settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
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

    def start(self) -> None:
        """Start and wait until connections are accepted."""
        found = program("pgbouncer", "pgbouncer")
        self._folder = self._write_configuration()
        self._process = ServerProcess([found.path, "pgbouncer.ini"], READY, self._folder, found.environment)
        self._process.wait_ready()

    def stop(self) -> None:
        if self._process:
            self._process.end(signal.SIGTERM)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def _write_configuration(self) -> Path:
        folder = self._new_folder()
        settings = "\n".join(f"{name} = {value}" for name, value in self._settings.items())
        databases = f"* = host=127.0.0.1 port={self._server.port} user=postgres"
        (folder / "pgbouncer.ini").write_text(f"[databases]\n{databases}\n\n[pgbouncer]\n{settings}\n")
        (folder / "users.txt").write_text('"postgres" ""\n')
        return folder
