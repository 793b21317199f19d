"""Finds a server program: already installed, or installed from Debian as root, or unpacked next to the
virtual environment."""

from __future__ import annotations

import fcntl
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
# Scripts of Debian's servers cannot handle a path that contains a space.
CACHE = (
    Path(sys.prefix, "servers") if " " not in sys.prefix else Path(f"/var/tmp/duetime-servers-{os.getuid()}")
)
INSTALL = ("apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120")


@dataclass(frozen=True, slots=True)
class Program:
    """The path of a program and the environment it needs."""

    path: Path
    environment: Mapping[str, str] = field(default_factory=dict)


@functools.cache
def program(name: str, package: str) -> Program:
    """The program `name`, taken from the Debian package `package` if it is not installed."""
    for find in (installed, install, unpack):
        found = find(name, package)
        if found:
            return found
    raise ServerFailed(f"{name} is missing: run `apt-get update && apt-get install {package}` as root")


@functools.cache
def unpacked(name: str, package: str) -> Program:
    """As `program`, but never installs the package: some packages start a server when they are installed."""
    found = installed(name, package) or unpack(name, package)
    if found is None:
        raise ServerFailed(f"{name} is missing: run `apt-get update && apt-get install {package}` as root")
    return found


def installed(name: str, package: str) -> Program | None:
    path = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), *SYSTEM_FOLDERS)))
    return Program(Path(path)) if path else None


def install(name: str, package: str) -> Program | None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return None
    if not any(PACKAGE_LISTS.glob("*_Packages*")):
        run_command("apt-get", "update")
    return installed(name, package) if run_command(*INSTALL, package) is not None else None


def unpack(name: str, package: str) -> Program | None:
    """Needs no privileges: unpacks the package and its missing dependencies into a private folder."""
    folder = CACHE / package
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{package}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes that run at the same time unpack it once
        if not (folder / "complete").exists() and not _fetch(folder, package):
            return None
    found = [path for path in folder.glob(f"usr/*bin/{name}") if os.access(path, os.X_OK)]
    libraries = {str(path.parent) for path in folder.glob("**/lib*.so*")}
    return Program(found[0], {"LD_LIBRARY_PATH": os.pathsep.join(sorted(libraries))}) if found else None


def _fetch(folder: Path, package: str) -> bool:
    simulated = (
        run_command("apt-get", "install", "--simulate", "--no-install-recommends", package)
        if shutil.which("apt-get")
        else None
    )
    if simulated is None:
        return False
    missing = [line.split()[1] for line in simulated.splitlines() if line.startswith("Inst ")]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if run_command("apt-get", "download", *missing, folder=folder) is None:
        return False
    for archive in folder.glob("*.deb"):
        if run_command("dpkg-deb", "-x", str(archive), str(folder)) is None:
            return False
        archive.unlink()
    (folder / "complete").touch()
    return True


def run_command(*command: str, folder: Path | None = None) -> str | None:
    """The output of the command, or None if it failed."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout if done.returncode == 0 else None
