"""Message brokers for tests: Redis, RabbitMQ, NATS, and stand-ins for SQS (moto) and Kafka (librdkafka's mock
broker). Each has its own ports and data folder. Independent of pytest."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.servers.debian import Program, unpacked
from tests.servers.process import Account, Server, ServerFailed, ServerProcess, free_port, give

SAME_ACCOUNT: Account = {}
USER, PASSWORD = "worker", "s3cret-word"


class BrokerServer(Server):
    """`with RedisServer() as server:`, then `server.url`. The data survive `restart()`."""

    ready_text: str
    scheme: str
    owner: Account | None = None

    def __init__(self) -> None:
        super().__init__()
        self.kind = self.scheme

    @property
    def pid(self) -> int:
        assert self._process
        return self._process.pid

    @property
    def url(self) -> str:
        return self.url_for(USER, PASSWORD)

    def url_for(self, user: str, password: str) -> str:
        return f"{self.scheme}://{user}:{password}@127.0.0.1:{self.port}"

    @property
    def folder(self) -> Path:
        if self._folder is None:
            self._folder = self._new_folder()
        return self._folder

    def start(self) -> None:
        """Start and wait until connections are accepted."""
        self._process = ServerProcess(
            self.command(), self.ready_text, self.folder, self.environment(), self.owner
        )
        self._process.wait_ready()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self._process:
            self._process.end(number)
            self._process = None

    def command(self) -> Sequence[str | Path]:
        raise NotImplementedError

    def environment(self) -> Mapping[str, str]:
        return {}

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        give(path)
        return path


class RedisServer(BrokerServer):
    """A server that is not durable forgets everything when it ends."""

    ready_text = "Ready to accept connections"
    scheme = "redis"

    def __init__(self, durable: bool = True, default_user: bool = True, **settings: str) -> None:
        super().__init__()
        self._durable = durable
        self._default_user = default_user  # with the same password
        self._settings = {name.replace("_", "-"): value for name, value in settings.items()}

    def command(self) -> Sequence[str | Path]:
        settings = {
            "port": self.port,
            "bind": "127.0.0.1",
            "dir": self.folder,
            "save": '""',
            "appendonly": "yes" if self._durable else "no",
            "appendfsync": "everysec",
            "user": f"{USER} on >{PASSWORD} ~* &* +@all",
            **self._settings,
        }
        lines = [f"{name} {value}" for name, value in settings.items()]
        lines.append(f"requirepass {PASSWORD}" if self._default_user else "user default off")
        return [_redis().path, self.write("redis.conf", "\n".join([*lines, ""]))]

    def environment(self) -> Mapping[str, str]:
        return _redis().environment


def _redis() -> Program:
    return unpacked("redis-server", "redis-server")


class NatsServer(BrokerServer):
    """With a file of its key and certificates it requires TLS."""

    ready_text = "Server is ready"
    scheme = "nats"

    def __init__(self, certificate: str = "") -> None:
        super().__init__()
        self._certificate = certificate

    def command(self) -> Sequence[str | Path]:
        options = {"-a": "127.0.0.1", "-p": self.port, "-sd": self.folder, "--user": USER, "--pass": PASSWORD}
        if self._certificate:
            path = self.write("server.pem", self._certificate)
            options |= {"--tlscert": path, "--tlskey": path}
        return [_nats(), "-js", *(str(part) for option in options.items() for part in option)]


def _nats() -> Path:
    for folder in (Path(sys.prefix) / "bin", *map(Path, os.environ.get("PATH", "").split(os.pathsep))):
        if os.access(folder / "nats-server", os.X_OK):
            return folder / "nats-server"
    raise ServerFailed("nats-server is missing: run `make setup`")


class RabbitServer(BrokerServer):
    """With its own port mapper (epmd): otherwise RabbitMQ starts one that outlives the tests. The settings are
    those of Erlang's application `rabbit`."""

    ready_text = "Server startup complete"
    scheme = "amqp"

    def __init__(self, **settings: int) -> None:
        super().__init__()
        self._settings = settings
        self._mapper_port, self._node_port = free_port(), free_port()
        self._mapper: ServerProcess | None = None

    def start(self) -> None:
        if self._mapper is None:
            mapper = next(_library("erlang").glob("erts-*/bin/epmd"))
            command: list[str | Path] = [
                mapper,
                "-d",
                "-port",
                str(self._mapper_port),
                "-address",
                "127.0.0.1",
            ]
            self._mapper = ServerProcess(command, "epmd running", self.folder)
            self._mapper.wait_ready()
        super().start()

    def close(self) -> None:
        self.stop()
        if self._mapper:
            self._mapper.end(signal.SIGTERM)
            self._mapper = None
        super().close()

    def command(self) -> Sequence[str | Path]:
        self.write("plugins", "[].")
        self.write(
            "rabbitmq.conf",
            f"default_user = {USER}\ndefault_pass = {PASSWORD}\nlog.console = true\n",
        )
        # Debian's own `erl` works only below /usr.
        binaries = next(_library("erlang").glob("erts-*/bin/erlexec")).parent
        erl = f"#!/bin/sh\nexport ROOTDIR={_library('erlang')} BINDIR={binaries} EMU=beam PROGNAME=erl\n"
        self.write("erl", f'{erl}exec {binaries}/erlexec "$@"\n').chmod(0o755)
        return [*_library("rabbitmq").glob("lib/*/sbin/rabbitmq-server")][:1]

    def environment(self) -> Mapping[str, str]:
        return {
            **_rabbit().environment,
            "HOME": str(self.folder),
            "PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}",
            "RABBITMQ_NODENAME": f"duetime{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._node_port),
            "ERL_EPMD_PORT": str(self._mapper_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_CONFIG_FILE": str(self.folder / "rabbitmq"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": " ".join(
                f"-rabbit {name} {value}" for name, value in self._settings.items()
            ),
            "LC_ALL": "C.UTF-8",
        }


def _rabbit() -> Program:
    return unpacked("rabbitmq-server", "rabbitmq-server")


def _library(name: str) -> Path:
    """The folder of RabbitMQ or Erlang: the Debian package has both below usr/lib."""
    return _rabbit().path.parent.parent / "lib" / name


class MotoServer(BrokerServer):
    """Stands for SQS. It keeps everything in memory and checks no credentials."""

    ready_text = "Running on"
    scheme = "sqs"
    owner = SAME_ACCOUNT  # runs Python, which another account may not be able to read

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> Sequence[str | Path]:
        return [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]


class KafkaMock(BrokerServer):
    """Stands for Kafka: the mock broker of librdkafka, which chooses its port and keeps everything in
    memory."""

    ready_text = "listening on"
    scheme = "kafka"
    owner = SAME_ACCOUNT

    def start(self) -> None:
        super().start()
        assert self._process
        self.port = int(self._process.log.rpartition(":")[2])

    def command(self) -> Sequence[str | Path]:
        return [sys.executable, Path(__file__).with_name("kafka_mock.py")]
