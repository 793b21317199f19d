"""A page of the documentation and its code blocks, and how each kind of block is run.

Python blocks of a page run in order in one namespace; `await` is allowed at top level of fragments. A block
that imports Duetime is a complete example: it is also saved as a file and run by itself. A block whose first
line is `# name.py` or `# folder/name.py` (or `.toml`, `.yaml`, ...) is a file: it is written into the page's
folder, from where the other blocks can import it. Shell blocks run line by line. A block that cannot run
stands below the comment `<!-- not run: reason -->`. A `curl` must be answered with 2xx, or with the status
that a comment at its end names.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.servers.process import free_port

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
SERVER_URL = "postgresql://scheduler@db.example.org/duetime"
FILE_LINE = re.compile(r"# ((?:\w+/)*[\w.]+\.(?:py|toml|ini|yaml|crontab|csv))$")
PORTS = ("8080", "8081")  # of the services on a page; each gets a free one
KEPT = re.compile(r"(?P<name>\w+)=\$\((?P<command>.*?)(?: \| jq -r \.(?P<field>\w+))?\)$")
STATUS = re.compile(r"# (\d{3})$")
MODULE = "page"  # the module that holds the names of a page
BLOCK = re.compile(
    r"(?P<mark><!-- not run: (?P<reason>[^>]+?) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
DEADLINE = 60.0


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    text: str
    line: int
    not_run: str | None

    @property
    def file(self) -> str | None:
        found = FILE_LINE.match(self.text.partition("\n")[0])
        return found[1] if found else None

    @property
    def is_complete(self) -> bool:
        return self.language == "python" and "\nimport duetime" in f"\n{self.text}"


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    return [
        Block(found["language"], found["text"], text.count("\n", 0, found.start("text")) + 1, found["reason"])
        for found in BLOCK.finditer(text)
    ]


@dataclass
class Reader:
    """Does what a page says, in its own folder."""

    page: Path
    folder: Path
    server_url: str | None = None
    module: ModuleType = field(default_factory=lambda: ModuleType(MODULE))
    environment: dict[str, str] = field(default_factory=dict)
    serving: list[subprocess.Popen[bytes]] = field(default_factory=list)
    ports: dict[str, int] = field(default_factory=lambda: {port: free_port() for port in PORTS})

    @property
    def names(self) -> dict[str, Any]:
        return self.module.__dict__

    async def follow(self) -> None:
        try:
            with self._importable():
                for block in blocks(self.page):
                    if block.not_run is None:
                        await self._do(block)
        finally:
            self._stop()

    @contextmanager
    def _importable(self) -> Iterator[None]:
        """The page itself and the files in its folder, until the end of the page: the next page uses the
        same names."""
        sys.path.insert(0, str(self.folder))
        sys.modules[MODULE] = self.module
        try:
            yield
        finally:
            sys.path.remove(str(self.folder))
            for name, module in list(sys.modules.items()):
                if name == MODULE or self.folder in Path(getattr(module, "__file__", None) or "/").parents:
                    del sys.modules[name]

    async def _do(self, block: Block) -> None:
        text = block.text.replace(SERVER_URL, self.server_url or SERVER_URL)
        for port, own in self.ports.items():
            text = text.replace(f"127.0.0.1:{port}", f"127.0.0.1:{own}").replace(
                f"--port {port}", f"--port {own}"
            )
        if block.is_complete:
            compile(text, f"{self.page}:{block.line}", "exec", dont_inherit=True)
        if block.file is not None:
            file = self.folder / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        elif block.language == "python":
            if block.is_complete:
                (self.folder / f"line_{block.line}.py").write_text(text)
                self._finish(["python", f"line_{block.line}.py"], block.line)
            await self._run_python(text, block.line)
        elif block.language == "sh":
            for command in text.replace("\\\n", " ").splitlines():
                self._run_command(command, block.line)
        else:
            assert block.language in ("text", "sql"), (
                f"{self.page}:{block.line}: what is a {block.language!r} block?"
            )

    async def _run_python(self, text: str, line: int) -> None:
        code = compile(
            "\n" * line + text,
            str(self.page),
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
            dont_inherit=True,
        )
        answer = eval(code, self.names)
        if inspect.iscoroutine(answer):
            await answer

    def _run_command(self, command: str, line: int) -> None:
        kept = KEPT.match(command)
        if kept is not None:
            words = shlex.split(kept["command"])
            answer = self._curl(kept["command"], line) if words[0] == "curl" else self._finish(words, line)
            self.environment[kept["name"]] = (
                str(json.loads(answer)[kept["field"]]) if kept["field"] else answer.strip()
            )
            return
        words = shlex.split(command, comments=True)
        match words:
            case []:
                pass
            case ["export", setting]:
                name, _, value = setting.partition("=")
                self.environment[name] = value
            case ["curl", *_]:
                self._curl(command, line)
            case ["make", target, *_]:
                assert f"\n{target}:" in (ROOT / "Makefile").read_text(), (
                    f"{self.page}:{line}: no target {target}"
                )
            case ["pip", "install", *packages]:
                assert all(_installable(package) for package in packages), f"{self.page}:{line}: {command}"
            case ["duetime" | "momentum" | "python" | "flask", *_] if {
                "serve",
                "worker",
                "duetime_worker",
            } & set(words):
                self._serve(words)
            case ["duetime" | "momentum" | "python" | "flask" | "pytest", *_]:
                self._finish(words, line)
            case _:
                raise AssertionError(f"{self.page}:{line}: the test cannot run `{command}`")

    def _curl(self, command: str, line: int) -> str:
        """The few options we use, as one request."""
        expected = STATUS.search(command)
        filled = re.sub(r"\$(\w+)", lambda found: self.environment[found[1]], command)
        method, data, headers, address = None, None, {}, ""
        words = iter(shlex.split(filled, comments=True)[1:])
        for word in words:
            match word:
                case "-X":
                    method = next(words)
                case "-d":
                    data = next(words).encode()
                case "-H":
                    name, _, value = next(words).partition(": ")
                    headers[name] = value
                case "-s":
                    pass
                case _:
                    assert word.startswith("http://127.0.0.1:"), (
                        f"{self.page}:{line}: the test cannot run `{command}`"
                    )
                    address = word
        status, answer = _ask(Request(address, data, headers, method=method))
        wanted = [int(expected[1])] if expected else range(200, 300)
        assert status in wanted, f"{self.page}:{line}: {command}\n{status} {answer}"
        return answer

    def _finish(self, words: list[str], line: int) -> str:
        command = [str(BIN / words[0]), *words[1:]]
        variables = {"DUETIME_PORT": str(self.ports["8080"]), **self._variables()}
        done = subprocess.run(
            command, cwd=self.folder, env=variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{self.page}:{line}: {' '.join(words)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _serve(self, words: list[str]) -> None:
        log = self.folder / f"serve{len(self.serving)}.log"
        # "Another machine" is this one, and other pages are tested at the same time: each needs its own port.
        variables = {"DUETIME_PORT": "0" if self.serving else str(self.ports["8080"]), **self._variables()}
        with log.open("wb") as output:
            process = subprocess.Popen(
                [str(BIN / words[0]), *words[1:]],
                cwd=self.folder,
                env=variables,
                stdout=output,
                stderr=output,
            )
        self.serving.append(process)
        end = time.monotonic() + DEADLINE
        while "joined" not in log.read_text() or ("serve" in words and "Ctrl-C" not in log.read_text()):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.02)

    def _stop(self) -> None:
        for process in self.serving:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(DEADLINE) for process in self.serving] == [0] * len(self.serving)

    def _variables(self) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("DUETIME_")},
            "MOMENTUM_PORT": str(self.ports["8081"]),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            **self.environment,
        }


def _ask(request: Request) -> tuple[int, str]:
    try:
        with urlopen(request, timeout=DEADLINE) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as refused:
        return refused.code, refused.read().decode()


def _installable(package: str) -> bool:
    return package in ("duetime", "-e", ".") or package.startswith(("duetime[", ".["))
