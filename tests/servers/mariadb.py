"""A temporary MariaDB server on a free port, and a Galera cluster of them, each with its own data folder that
is removed afterwards. Independent of pytest."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pymysql
from pymysql.constants import CLIENT

from tests.servers.brokers import BrokerServer
from tests.servers.debian import Program, unpacked
from tests.servers.process import ServerFailed, account, free_port, give

USER, PASSWORD = "duetime", "s3cret-word"
ACCOUNT = f"""
CREATE USER IF NOT EXISTS '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';
GRANT ALL ON *.* TO '{USER}'@'%';
"""
# For tests of durability; explicit, so that no default can weaken them.
DURABLE = {"innodb-flush-log-at-trx-commit": "1", "innodb-doublewrite": "ON"}
FAST = {"innodb-flush-log-at-trx-commit": "0", "innodb-doublewrite": "OFF", "innodb-flush-method": "nosync"}


class MariaDbServer(BrokerServer):
    """`with MariaDbServer() as server:` starts it, and finally stops it and removes its data."""

    ready_text = "ready for connections"
    scheme = "mysql"

    def __init__(self, *, durable: bool = False, settings: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.settings = {**(DURABLE if durable else FAST), **(settings or {})}

    def crash(self) -> None:
        """End the process without any clean-up, like a power failure of the program."""
        self.stop(signal.SIGKILL)

    def database_url(self, name: str) -> str:
        return f"{self.url_for(USER, PASSWORD)}/{name}"

    def create_database(self, name: str) -> str:
        """Create a database. Returns its URL."""
        self.execute(f"CREATE DATABASE {name}")
        return self.database_url(name)

    def drop_database(self, name: str) -> None:
        self.execute(f"DROP DATABASE IF EXISTS {name}")

    def connect(self) -> pymysql.Connection[Any]:
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user=USER,
            password=PASSWORD,
            autocommit=True,
            client_flag=CLIENT.MULTI_STATEMENTS,
        )

    def execute(self, statement: str) -> Sequence[Sequence[object]]:
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def command(self) -> Sequence[str | Path]:
        data = self.folder / "data"
        if not data.exists():
            self._install(data)
        options = {
            "basedir": _root(),
            "datadir": data,
            "port": self.port,
            "bind-address": "127.0.0.1",
            "socket": self.folder / "socket",
            "pid-file": self.folder / "pid",
            "tmpdir": self.temporary,
            "init-file": self.write("account.sql", ACCOUNT),
            "skip-name-resolve": "ON",
            "max-connections": 300,
            "innodb-buffer-pool-size": "256M",
            "innodb-log-file-size": "128M",
            "wsrep-on": "OFF",
            **self.settings,
        }
        return [
            _mariadbd().path,
            "--no-defaults",
            *(f"--{name}={value}" for name, value in options.items()),
        ]

    @property
    def temporary(self) -> Path:
        """Its own: a server that starts removes the temporary tables of all servers from a shared folder."""
        path = self.folder / "temporary"
        if not path.exists():
            path.mkdir()
            give(path)
        return path

    def environment(self) -> Mapping[str, str]:
        paths = [str(_root() / folder) for folder in ("bin", "sbin")]
        return {**_mariadbd().environment, "PATH": os.pathsep.join([*paths, os.environ.get("PATH", "")])}

    def _install(self, data: Path) -> None:
        command: list[str | Path] = [
            _root() / "bin" / "mariadb-install-db",
            "--no-defaults",
            f"--basedir={_root()}",
            f"--datadir={data}",
            f"--tmpdir={self.temporary}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
            "--innodb-log-file-size=128M",
        ]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env={**os.environ, **self.environment()},
            capture_output=True,
            text=True,
            check=False,
            **account(),
        )
        if done.returncode != 0:
            raise ServerFailed(f"mariadb-install-db failed:\n{done.stdout}{done.stderr}")


class GaleraCluster:
    """Servers that have the same data: each commit is certified by all of them."""

    def __init__(self, size: int = 3, settings: Mapping[str, str] | None = None) -> None:
        self._ports = [free_port() for _ in range(size)]
        self._stack = ExitStack()
        self._settings = settings or {}
        self.nodes: list[MariaDbServer] = []

    def __enter__(self) -> Self:
        try:
            for number in range(len(self._ports)):
                self.nodes.append(self._stack.enter_context(self._node(number)))
                self.nodes[-1].settings["wsrep-cluster-address"] = self._address
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for node in self.nodes:  # all at the same time: they need not hand over to each other
            if node.is_running:
                node.crash()
        self._stack.close()

    @property
    def _address(self) -> str:
        return "gcomm://" + ",".join(f"127.0.0.1:{port}" for port in self._ports)

    def _node(self, number: int) -> MariaDbServer:
        port = self._ports[number]
        first = number == 0
        # Its own timeouts for silent servers (5 s, 15 s) stay: with shorter ones a busy machine is enough for the
        # cluster to exclude a living server, and two of three that are gone leave it without a majority.
        options = f"base_port={port};ist.recv_addr=127.0.0.1:{free_port()};gcache.size=32M"
        return MariaDbServer(
            settings={
                "wsrep-on": "ON",
                "wsrep-provider": str(_galera()),
                "wsrep-cluster-name": f"duetime-{self._ports[0]}",
                "wsrep-cluster-address": "gcomm://" if first else self._address,
                "wsrep-node-address": "127.0.0.1",
                "wsrep-node-name": f"node{number + 1}",
                "wsrep-sst-method": "rsync",
                "wsrep-sst-receive-address": f"127.0.0.1:{free_port()}",
                "wsrep-provider-options": f"{options};gmcast.listen_addr=tcp://127.0.0.1:{port}",
                "binlog-format": "ROW",
                "innodb-autoinc-lock-mode": "2",
                **self._settings,
            }
        )


def _mariadbd() -> Program:
    return unpacked("mariadbd", "mariadb-server")


def _root() -> Path:
    return _mariadbd().path.parent.parent


def _galera() -> Path:
    return next(_root().glob("lib/galera/libgalera_smm.so"))


class MariaDbEmptying:
    """Empties the tables of a database between tests, which is faster than creating a new one. Keeps one
    connection."""

    def __init__(self, server: MariaDbServer, database: str) -> None:
        self._connection = server.connect()
        found = server.execute(
            f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{database}'"
            " AND table_name NOT IN ('duetime_schema_version', 'duetime_counters')"
        )
        self._statements = [f"DELETE FROM {database}.{name}" for (name,) in found]
        self._statements.append(f"UPDATE {database}.duetime_counters SET value = 0")

    def empty(self) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute("; ".join(self._statements))
            while cursor.nextset():
                pass

    def close(self) -> None:
        self._connection.close()
