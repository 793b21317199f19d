"""`make fleet`: a fleet on this machine, for trying and testing, without containers: PostgreSQL, a broker,
2 APIs, 2 planners that also dispatch, and 3 workers. Sample schedules run on it. Nothing is started again.
Ctrl-C ends all and removes the data."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from base64 import b64encode
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.servers.brokers import BrokerServer, NatsServer, RabbitServer, RedisServer
from tests.servers.postgres import PostgresServer
from tests.servers.process import ServerFailed
from tests.servers.service import Service

BROKERS: dict[str, type[BrokerServer] | None] = {
    "rabbitmq": RabbitServer,
    "redis": RedisServer,
    "nats": NatsServer,
    "none": None,
}
APIS, PLANNERS, WORKERS = 2, 2, 3
DUETIME = str(Path(sys.executable).with_name("duetime"))
LOOK_INTERVAL = 0.5  # seconds
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class LocalFleet:
    """Starts everything and hands it to `stack`, which ends it in the opposite order."""

    def __init__(self, broker: str, stack: ExitStack) -> None:
        self._stack = stack
        self._folder = Path(tempfile.mkdtemp(prefix="duetime-fleet-"))
        stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
        self._postgres = stack.enter_context(PostgresServer(durable=True))
        self._store = self._postgres.create_database("fleet")
        kind = BROKERS[broker]
        self._broker = None if kind is None else _broker(kind)
        self._environment = {"DUETIME_SECRET_KEYS": f"fleet:{b64encode(os.urandom(32)).decode()}"}
        if self._broker is not None:
            stack.callback(self._broker.close)
            self._environment["DUETIME_QUEUE"] = self._broker.url
        self._duetime("migrate", "--store", self._store)
        self.processes: dict[str, Service] = {}
        for number in range(1, APIS + 1):
            self._start(f"api-{number}", "--roles", "api")
        address = self.processes["api-1"].address
        roles = "planner" if self._broker is None else "planner,dispatcher"
        for number in range(1, PLANNERS + 1):
            self._start(f"planner-{number}", "--roles", roles)
        for number in range(1, WORKERS + 1):
            # The sample schedules call this machine, and report to the API.
            own = ("--allow", "127.0.0.1", "--public-url", address)
            self._start(f"worker-{number}", "--roles", "worker", *own)
        self._duetime("--server", address, "demo")

    def lines(self) -> list[str]:
        """What the user needs to know."""
        apis = [self.processes[f"api-{number}"].address for number in range(1, APIS + 1)]
        return [
            "a fleet is running, with the sample schedules of `duetime demo`",
            f"  UI          {'  '.join(f'{address}/ui/' for address in apis)}",
            f"  API         {'  '.join(f'{address}/api/v1' for address in apis)}  (no key needed)",
            f"  PostgreSQL  {self._store}",
            f"  broker      {'none' if self._broker is None else self._broker.url}",
            f"  try         {DUETIME} --server {apis[0]} node list",
            *(
                f"  {name:<11} pid {process.process.pid}  {process.address}/metrics  {self._log(name)}"
                for name, process in self.processes.items()
            ),
            "  stop        Ctrl-C",
        ]

    def ended(self) -> list[str]:
        """Processes that ended since the last look. They are not started again."""
        found = [name for name, process in self.processes.items() if process.process.poll() is not None]
        return [self._end_of(name, self.processes.pop(name)) for name in found]

    def _end_of(self, name: str, process: Service) -> str:
        return f"{name} (pid {process.process.pid}) ended with status {process.process.returncode}"

    def _start(self, name: str, *options: str) -> None:
        self.processes[name] = self._stack.enter_context(
            Service(
                self._store,
                self._log(name),
                "--grace",
                "5s",
                *options,
                environment=self._environment,
                folder=self._folder,
            )
        )

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _duetime(self, *words: str) -> None:
        own = {name: value for name, value in os.environ.items() if not name.startswith("DUETIME_")}
        done = subprocess.run(
            [DUETIME, *words], cwd=self._folder, env=own, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise ServerFailed(f"duetime {words[0]} failed: {done.stderr}")


def _broker(kind: type[BrokerServer]) -> BrokerServer:
    server = kind()
    try:
        server.start()
    except ServerFailed as problem:
        server.close()
        others = "or try another: make fleet ARGS='--broker redis' (nats, none)"
        raise ServerFailed(f"{problem}; {others}") from None
    return server


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make fleet", description=__doc__)
    parser.add_argument("--broker", choices=sorted(BROKERS), default="rabbitmq", help="default: rabbitmq")
    broker = parser.parse_args(words).broker
    for number in STOPS:
        signal.signal(number, _stop)
    sys.stderr.write("starting servers and processes, which takes a while ...\n")
    with ExitStack() as stack:
        try:
            fleet = LocalFleet(broker, stack)
        except ServerFailed as problem:
            _say(f"the fleet did not start: {problem}")
            return 1
        for line in fleet.lines():
            _say(line)
        while True:
            time.sleep(LOOK_INTERVAL)
            for line in fleet.ended():
                _say(line)


def _stop(number: int, _: object) -> None:
    """The first signal ends everything; others must not interrupt that."""
    for each in STOPS:
        signal.signal(each, signal.SIG_IGN)
    sys.exit(0)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
