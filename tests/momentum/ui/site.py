"""`momentum serve` in its own process, with calls that prepare data and look at the effect."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import httpx2 as httpx

from tests.servers.process import ServerFailed
from tests.ui.site import ROOT

START_TIMEOUT = 120.0  # seconds
STOP_TIMEOUT = 60.0
PROGRAM = "from momentum.cli import main; main()"
ADDRESS = re.compile(r"^API\s+(\S+)/api/v1", re.M)
LINKEDIN = re.compile(r"^LinkedIn\s+(\S+)", re.M)
MEMBER = re.compile(r'name="member" value="([^"]+)"')


class MomentumSite:
    """The demo, unless other options are given."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder = folder
        self._log = folder / "serve.log"
        chosen = options or ("--demo", "--data", str(folder / "data"))
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, "serve", "--port", "0", *chosen],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environment,
                start_new_session=True,
            )
        try:
            self.address = self._wait_for(ADDRESS)
        except BaseException:
            self.stop()
            raise

    @property
    def _environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("MOMENTUM_")}
        return {**own, "PYTHONPATH": str(ROOT / "src"), "MOMENTUM_KEY_FILE": str(self._folder / "key")}

    @property
    def ui(self) -> str:
        """The address of the page."""
        return self.address

    @property
    def database(self) -> str:
        return f"sqlite:///{self._folder / 'data' / 'momentum.db'}"

    @property
    def linkedin(self) -> str:
        """The address of the local LinkedIn."""
        return self._wait_for(LINKEDIN)

    def _wait_for(self, pattern: re.Pattern[str]) -> str:
        deadline = time.monotonic() + START_TIMEOUT
        while (found := pattern.search(self._log.read_text())) is None:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise ServerFailed(f"momentum serve did not start; its log:\n{self._log.read_text()}")
            time.sleep(0.01)
        return found[1]

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def run(self, *arguments: str) -> str:
        """Another command of `momentum`; its output."""
        command = [sys.executable, "-c", PROGRAM, *arguments]
        done = subprocess.run(command, env=self._environment, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def request(self, method: str, path: str, body: Any = None) -> Any:
        response = httpx.request(method, f"{self.address}/api/v1{path}", json=body, timeout=60)
        assert response.is_success, response.text
        return response.json() if response.content else None

    def sandbox(self, method: str, path: str, body: Any = None) -> Any:
        response = httpx.request(method, f"{self.linkedin}/sandbox{path}", json=body, timeout=60)
        assert response.is_success, response.text
        return response.json() if response.content else None

    def connect(self) -> list[Any]:
        """Connects the first member of the local LinkedIn as a browser does, and its organization."""
        with httpx.Client(follow_redirects=True, timeout=60) as browser:
            begun = browser.post(f"{self.address}/api/v1/accounts/connect", json={"platform": "linkedin"})
            url = begun.json()["url"]
            member = MEMBER.search(browser.get(url).text)
            assert member is not None
            fields = dict(parse_qsl(urlsplit(url).query))
            form = {
                **fields,
                "member": member[1],
                "decision": "allow",
                "granted": fields["scope"].split(),
            }
            finished = browser.post(url.partition("?")[0], data=form)
            assert "connected=" in str(finished.url), finished.url
        accounts: list[Any] = self.request("GET", "/accounts")["items"]
        return accounts

    def add_post(self, account: Any, text: str, at: datetime | None = None, **fields: Any) -> Any:
        when = {} if at is None else {"scheduled_at": at.isoformat(), "zone": "Europe/Berlin"}
        return self.request("POST", "/posts", {"account_id": account["id"], "text": text, **when, **fields})


def in_two_days(hour: int = 9) -> datetime:
    """At this hour in UTC: on a later day in every zone."""
    return datetime.now(UTC).replace(hour=hour, minute=0, second=0, microsecond=0) + timedelta(days=2)
