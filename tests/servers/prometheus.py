"""A temporary Prometheus with its own port and data folder. Independent of pytest."""

from __future__ import annotations

import json
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.servers.brokers import BrokerServer
from tests.servers.debian import unpacked

CONFIGURATION = """
global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s}
rule_files: [rules.yml]
scrape_configs:
  - job_name: duetime
    file_sd_configs: [{files: [targets.json], refresh_interval: 1s}]
"""


class PrometheusServer(BrokerServer):
    """Scrapes the addresses it was given last every two seconds."""

    ready_text = "Server is ready to receive web requests"
    scheme = "http"

    def __init__(self, rules: str) -> None:
        super().__init__()
        self._rules = rules

    def command(self) -> Sequence[str | Path]:
        self.write("prometheus.yml", CONFIGURATION)
        self.write("rules.yml", self._rules)
        self.scrape([])
        return [
            unpacked("prometheus", "prometheus").path,
            f"--config.file={self.folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]

    def environment(self) -> Mapping[str, str]:
        return unpacked("prometheus", "prometheus").environment

    def scrape(self, addresses: Sequence[str]) -> None:
        places = [address.removeprefix("http://") for address in addresses]
        self.write("targets.json", json.dumps([{"targets": places}]))

    def query(self, expression: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._get("query", query=expression)["result"]
        return found

    def firing(self) -> set[str]:
        return {
            one["labels"]["alertname"] for one in self._get("alerts")["alerts"] if one["state"] == "firing"
        }

    def _get(self, path: str, **parameters: str) -> Any:
        words = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(
            f"http://127.0.0.1:{self.port}/api/v1/{path}?{words}", timeout=30
        ) as reply:
            return json.load(reply)["data"]


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    program = unpacked("promtool", "prometheus")
    return subprocess.run(
        [program.path, *arguments],
        env={"PATH": "", **program.environment},
        capture_output=True,
        text=True,
        check=False,
    )
