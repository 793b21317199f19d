"""Finds a server's program: installed, else installed from Debian as root, else unpacked beside the virtual environment."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.servers.process import ServerFailed

SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
PACKAGE_LISTS = Path("/var/lib/apt/lists")
CACHE = Path(sys.prefix) / "servers"
INSTALL = ("apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120")


@dataclass(frozen=True, slots=True)
class Program:
    """Where the program is, and the environment it needs."""

    path: Path
    environment: Mapping[str, str] = field(default_factory=dict)


@functools.cache
def program(name: str, package: str) -> Program:
    """The program `name`, taken from the Debian package `package` if it is not installed."""
    for find in (_installed, _install, _unpack):
        found = find(name, package)
        if found:
            return found
    raise ServerFailed(f"{name} is not installed and could not be fetched: run `apt-get update && apt-get install {package}` as root")


def _installed(name: str, package: str) -> Program | None:
    path = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), *SYSTEM_FOLDERS)))
    return Program(Path(path)) if path else None


def _install(name: str, package: str) -> Program | None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return None
    if not any(PACKAGE_LISTS.glob("*_Packages*")):
        _run("apt-get", "update")
    return _installed(name, package) if _run(*INSTALL, package) is not None else None


def _unpack(name: str, package: str) -> Program | None:
    """Needs no rights: the package, and what it depends on and this machine lacks, in a folder of our own."""
    folder = CACHE / package
    if not (folder / "complete").exists() and not _fetch(folder, package):
        return None
    found = [path for path in folder.glob(f"usr/*bin/{name}") if os.access(path, os.X_OK)]
    libraries = {str(path.parent) for path in folder.glob("**/lib*.so*")}
    return Program(found[0], {"LD_LIBRARY_PATH": os.pathsep.join(sorted(libraries))}) if found else None


def _fetch(folder: Path, package: str) -> bool:
    simulated = _run("apt-get", "install", "--simulate", "--no-install-recommends", package) if shutil.which("apt-get") else None
    if simulated is None:
        return False
    missing = [line.split()[1] for line in simulated.splitlines() if line.startswith("Inst ")]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if _run("apt-get", "download", *missing, folder=folder) is None:
        return False
    for archive in folder.glob("*.deb"):
        if _run("dpkg-deb", "-x", str(archive), str(folder)) is None:
            return False
        archive.unlink()
    (folder / "complete").touch()
    return True


def _run(*command: str, folder: Path | None = None) -> str | None:
    """What the command printed, or nothing when it failed."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    done = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None
