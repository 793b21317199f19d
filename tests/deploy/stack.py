"""Starts a profile of deploy/compose.yaml without containers: the same commands, settings, secrets and health checks
as processes of this machine. Ports are free ones, and names of containers become `localhost`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import yaml

from tests.servers.debian import unpacked
from tests.servers.process import free_port

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
BIN = Path(sys.executable).parent
TIMEOUT = 60.0  # seconds
VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
PORTS = ("8080", "5678")


def composition() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    return found


def services(profile: str) -> dict[str, dict[str, Any]]:
    return {name: one for name, one in composition()["services"].items() if profile in one["profiles"]}


def image_environment() -> dict[str, str]:
    """The settings of the image."""
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    return dict(re.findall(r"^\s+(DUETIME_\w+)=(\S+)", text, re.MULTILINE))


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


class StackService:
    """One container of a service, as a process."""

    def __init__(self, stack: Stack, name: str, number: int, service: Mapping[str, Any]) -> None:
        self._stack, self._service = stack, service
        self.name = f"{name}-{number}"
        self.folder = stack.folder / self.name
        self.folder.mkdir(exist_ok=True)  # it may start again
        self.port = stack.ports.setdefault(f"{name}:{number}", str(free_port()))
        own = stack.known | dict.fromkeys(PORTS, self.port)
        words = [
            _replaced(word, own) for word in (*service.get("entrypoint", ["duetime"]), *service["command"])
        ]
        for config in service.get("configs", ()):
            file = composition()["configs"][config["source"]]["file"]
            words = [str(DEPLOY / file) if word == config["target"] else word for word in words]
        self.environment = {**_outside(), **image_environment(), **self._settings(), **stack.extra}
        self._log = self.folder / "log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(BIN / words[0]), *words[1:]],
                cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def output(self) -> str:
        return self._log.read_text()

    def _settings(self) -> dict[str, str]:
        found = {
            name: _replaced(VARIABLE.sub(lambda part: part[2] or "", str(value)), self._stack.known)
            for name, value in self._service.get("environment", {}).items()
        }
        for secret in self._service.get("secrets", ()):
            source = Path(composition()["secrets"][secret["source"]]["file"])
            target = self.folder / secret["target"]
            target.write_text(self._stack.secret(source.name))
            found = {
                name: value.replace(f"/run/secrets/{secret['target']}", str(target))
                for name, value in found.items()
            }
        return found

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.output
        try:
            urlopen(f"{self.address}/readyz", timeout=TIMEOUT).close()
        except OSError:  # also an answer that is not 200
            return False
        return True

    def is_healthy(self) -> bool:
        """By the health check of the service."""
        assert self.process.poll() is None, self.output
        kind, program, *words = self._service["healthcheck"]["test"]
        assert (kind, program) == ("CMD", "python")
        command = [sys.executable, *(_replaced(word, dict.fromkeys(PORTS, self.port)) for word in words)]
        return subprocess.run(command, capture_output=True, check=False, timeout=TIMEOUT).returncode == 0

    def wait_healthy(self) -> None:
        """Asks cheaply first: a health check starts a Python."""
        wait_for(self._answers, lambda: f"{self.name} did not become healthy:\n{self.output}")
        assert self.is_healthy()

    def duetime(self, *words: str) -> str:
        """A command in the container."""
        done = subprocess.run(
            [str(BIN / "duetime"), *words], cwd=self.folder, env=self.environment,
            capture_output=True, text=True, check=False, timeout=TIMEOUT,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def stop(self) -> int:
        """The exit status after SIGTERM."""
        self.process.terminate()
        return self.process.wait(seconds(self._service.get("stop_grace_period", "10s")))

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


class Stack:
    """The services of a profile. `known` says what stands for the names of containers."""

    def __init__(self, profile: str, folder: Path, **extra: str) -> None:
        self.folder, self.profile, self.extra = folder, profile, extra
        self.known: dict[str, str] = {}
        self.ports: dict[str, str] = {}
        self._secrets = folder / "secrets"
        self._stack = ExitStack()
        self.running: dict[str, StackService] = {}
        done = subprocess.run(
            [str(DEPLOY / "run"), "secrets"], env={**os.environ, "SECRETS": str(self._secrets)}, check=False
        )
        assert done.returncode == 0

    def __enter__(self) -> Stack:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def secret(self, name: str) -> str:
        return _replaced((self._secrets / name).read_text(), self.known)

    def start(self, *names: str) -> Iterator[StackService]:
        """Start the services of these names, each as often as the file says."""
        for name in names:
            service = services(self.profile)[name]
            for number in range(1, service.get("deploy", {}).get("replicas", 1) + 1):
                one = StackService(self, name, number, service)
                self._stack.callback(one.close)
                self.running[one.name] = one
                yield one

    def start_healthy(self, *names: str) -> list[StackService]:
        started = list(self.start(*names))
        for one in started:
            one.wait_healthy()
        return started

    def start_proxy(self, first: StackService, second: StackService) -> str:
        """HAProxy with its file; its address."""
        haproxy, port = unpacked("haproxy", "haproxy"), free_port()
        assert set(services(self.profile)["proxy"]["environment"]) == {"LISTEN", "NODE_1", "NODE_2"}
        own = {
            "LISTEN": f"127.0.0.1:{port}",
            "NODE_1": f"127.0.0.1:{first.port}",
            "NODE_2": f"127.0.0.1:{second.port}",
        }
        with (self.folder / "proxy.log").open("wb") as log:
            process = subprocess.Popen(
                [str(haproxy.path), "-db", "-f", str(DEPLOY / "haproxy.cfg")],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**_outside(), **haproxy.environment, **own},
            )  # fmt: skip
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return f"http://127.0.0.1:{port}"


def wait_for(happened: Any, complaint: Any = lambda: "it did not happen") -> None:
    deadline = time.monotonic() + TIMEOUT
    while not happened():
        assert time.monotonic() < deadline, complaint()
        time.sleep(0.05)


def call(address: str, path: str, key: str, body: object = None) -> tuple[int, Any]:
    """The status and the JSON of an answer."""
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    request = Request(address + path, None if body is None else json.dumps(body).encode(), headers)
    try:
        with urlopen(request, timeout=TIMEOUT) as answer:
            return answer.status, json.load(answer)
    except HTTPError as refused:
        with refused:
            text = refused.read()
            is_json = "json" in refused.headers.get("content-type", "")  # not that of a proxy
            return refused.code, json.loads(text) if is_json else text.decode()


def _outside() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("DUETIME_")}


def _replaced(text: str, known: Mapping[str, str]) -> str:
    for name, value in known.items():
        text = text.replace(name, value)
    return text
