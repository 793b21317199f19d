"""A temporary etcd server with its own ports and data folder. Independent of pytest."""

from __future__ import annotations

import base64
import json
import platform
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.servers.brokers import BrokerServer
from tests.servers.debian import unpacked
from tests.servers.process import free_port


class EtcdServer(BrokerServer):
    """One member without a password. It listens on `endpoint`. With a file of its key and certificates it
    requires TLS. `members`: all of its cluster, which must be started at the same time."""

    ready_text = "ready to serve client requests"
    scheme = "etcd"

    def __init__(self, certificate: str = "") -> None:
        super().__init__()
        self._peer_port = free_port()
        self._certificate = certificate
        self.members: Sequence[EtcdServer] = (self,)

    @property
    def endpoint(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{'etcds' if self._certificate else 'etcd'}://{self.endpoint}"

    @property
    def address(self) -> str:
        """For HTTP."""
        return f"{'https' if self._certificate else 'http'}://{self.endpoint}"

    @property
    def peer_address(self) -> str:
        return f"http://127.0.0.1:{self._peer_port}"

    def command(self) -> Sequence[str | Path]:
        client, peer = self.address, self.peer_address
        options = {
            "data-dir": str(self.folder / "data"),
            "listen-client-urls": client,
            "advertise-client-urls": client,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "name": f"member-{self.port}",
            "initial-cluster": ",".join(f"member-{one.port}={one.peer_address}" for one in self.members),
        }
        if self._certificate:
            path = str(self.write("server.pem", self._certificate))
            options |= {"cert-file": path, "key-file": path}
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        return [unpacked("etcd", "etcd-server").path, *words]

    def environment(self) -> Mapping[str, str]:
        # Version 3.4 does not start on other processors unless it is told that this is intended.
        arm = {"aarch64": "arm64"}.get(platform.machine())
        return {"ETCD_UNSUPPORTED_ARCH": arm} if arm else {}

    def call(self, path: str, body: Mapping[str, Any], token: str = "") -> Any:
        """A request of an operator, such as `auth/enable`."""
        headers = {"Authorization": token} if token else {}
        request = urllib.request.Request(f"{self.address}/v3/{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)


def encoded(text: str) -> str:
    """As etcd writes keys and values in JSON."""
    return base64.b64encode(text.encode()).decode()
