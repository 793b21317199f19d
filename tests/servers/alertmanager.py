"""A temporary Alertmanager that groups nothing and sends its notifications nowhere. Independent of pytest."""

from __future__ import annotations

import atexit
import json
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.servers.brokers import BrokerServer
from tests.servers.debian import unpacked
from tests.servers.process import free_port

TEMPLATES = "/usr/share/prometheus/alertmanager"
CONFIGURATION = """
route:
  receiver: nowhere
receivers:
  - name: nowhere
"""


class AlertmanagerServer(BrokerServer):
    ready_text = "Listening on"
    scheme = "alertmanager"

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def command(self) -> Sequence[str | Path]:
        return [
            self._program(),
            f"--config.file={self.write('alertmanager.yml', CONFIGURATION)}",
            f"--storage.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            f"--cluster.listen-address=127.0.0.1:{free_port()}",
            "--cluster.advertise-address=127.0.0.1:1",
        ]

    def _program(self) -> Path:
        """Debian's program reads its templates from a fixed folder, which is not there if the package is only
        unpacked: a copy of it reads them from a path of the same length."""
        original = unpacked("prometheus-alertmanager", "prometheus-alertmanager").path
        templates = original.parents[2] / TEMPLATES.lstrip("/")
        if Path(TEMPLATES).exists() or not templates.exists():
            return original
        link = Path(tempfile.gettempdir()) / f"am-{self.port}"
        link.symlink_to(templates)
        atexit.register(link.unlink, missing_ok=True)
        other = "/" * (len(TEMPLATES) - len(str(link))) + str(link)
        copy = self.folder / "alertmanager"
        copy.write_bytes(original.read_bytes().replace(TEMPLATES.encode(), other.encode()))
        copy.chmod(0o755)
        return copy

    def alerts(self) -> list[dict[str, Any]]:
        """Those that fire now."""
        with urllib.request.urlopen(f"{self.address}/api/v2/alerts?active=true") as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found
