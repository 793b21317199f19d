"""Builds the image of deploy/Dockerfile without a registry, and runs it without a container engine.

The base is a root file system of Debian packages (mmdebstrap), the wheels are downloaded by pip of this machine, the
builder is buildah. The image then runs in its own mount and process namespaces: read-only root file system, the user,
command, environment and folder of the image, no new privileges. Needs root, as builders without a daemon do here."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil

from tests.servers.debian import CACHE, program
from tests.servers.process import ServerFailed

ROOT = Path(__file__).parents[2]
BASE, IMAGE = "localhost/duetime-base", "localhost/duetime"
SUITE = "bookworm"
PACKAGES = "base-files,binutils,ca-certificates,coreutils,dash,python3,python3-venv"
PYTHON = "3.11"  # of that suite
LIBC = (
    "manylinux2014",
    "manylinux_2_17",
    "manylinux_2_24",
    "manylinux_2_26",
    "manylinux_2_28",
    "manylinux_2_34",
)
REQUIREMENTS = ("build.txt", "image.txt")
LIMIT = 900.0  # seconds for one step
# Arguments: root file system, data folder, then what `chroot` gets.
ENTER = """
set -eu
mount --bind "$1" "$1"
mount --bind "$2" "$1/data"
mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount -o remount,bind,ro "$1"
cd "$1"
shift 2
exec setpriv --no-new-privs chroot "$@"
"""


def require_root() -> None:
    if os.geteuid() != 0:
        raise ServerFailed("building and starting the image needs root: run `make image-test` as root")


class Builder:
    """Keeps images in a folder of its own; nothing of the machine's container engines is touched."""

    def __init__(self, folder: Path) -> None:
        require_root()
        self._folder = folder
        self._buildah = [
            str(program("buildah", "buildah").path), "--root", str(folder / "storage"),
            "--runroot", str(folder / "run"), "--storage-driver", "vfs",
        ]  # fmt: skip

    def build(self) -> None:
        context = self._folder / "base"
        context.mkdir()
        shutil.copy(_base(), context / "base.tar")
        (context / "Containerfile").write_text("FROM scratch\nADD base.tar /\n")
        self._run(
            "build", "--isolation", "chroot", "-t", BASE, "-f", str(context / "Containerfile"), str(context)
        )
        arguments = {"BASE": BASE, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels", "REVISION": "tested"}
        self._run(
            "build", "--isolation", "chroot", "--pull-never", "--volume", f"{_wheels()}:/wheels:ro",
            *(word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")),
            "-t", IMAGE, "-f", str(ROOT / "deploy" / "Dockerfile"), str(ROOT),
        )  # fmt: skip

    @property
    def config(self) -> dict[str, Any]:
        """What the image says about itself."""
        found: dict[str, Any] = json.loads(self._run("inspect", "--type", "image", IMAGE))["OCIv1"]["config"]
        return found

    def sizes(self) -> tuple[int, int]:
        """Bytes to download, of all layers and of those that are not the base."""
        target = self._folder / "pushed"
        self._run("push", IMAGE, f"oci:{target}:tested")
        index = json.loads((target / "index.json").read_text())
        manifest = json.loads(_blob(target, index["manifests"][0]["digest"]).read_text())
        layers = [layer["size"] for layer in manifest["layers"]]
        return sum(layers), sum(layers[1:])

    def root(self) -> Path:
        """The file system of a new container."""
        container = self._run("from", "--pull-never", IMAGE).strip()
        return Path(self._run("mount", container).strip())

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [*self._buildah, *words], capture_output=True, text=True, check=False, timeout=LIMIT,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode != 0:
            raise ServerFailed(f"buildah {words[0]} failed:\n{(done.stdout + done.stderr)[-4000:]}")
        return done.stdout


class Container:
    """A process started as the image says, with these arguments instead of its own if there are some."""

    def __init__(
        self, builder: Builder, root: Path, data: Path, log: Path, *words: str, **settings: str
    ) -> None:
        config = builder.config
        user, _, group = config["User"].partition(":")
        os.chown(data, int(user), int(group))
        environment = dict(line.split("=", 1) for line in config["Env"]) | settings
        self._log = log
        inner: Sequence[str] = [
            f"--userspec={config['User']}", "--groups=", str(root), "/usr/bin/env", "-i", f"-C{config['WorkingDir']}",
            *(f"{name}={value}" for name, value in environment.items()),
            *config["Entrypoint"], *(words or config["Cmd"]),
        ]  # fmt: skip
        with log.open("wb") as output:
            self._unshare = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
                 "sh", "-c", ENTER, "enter", str(root), str(data), *inner],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip

    @property
    def output(self) -> str:
        return self._log.read_text()

    @property
    def process(self) -> psutil.Process:
        """The first process of the container."""
        (child,) = psutil.Process(self._unshare.pid).children()
        return child

    @property
    def has_ended(self) -> bool:
        return self._unshare.poll() is not None

    def stop(self) -> int:
        """The exit status after SIGTERM."""
        self.process.terminate()
        return self.wait()

    def wait(self) -> int:
        return self._unshare.wait(60)

    def close(self) -> None:
        self._unshare.kill()  # and with it the container
        self._unshare.wait()


def _base() -> Path:
    """A root file system with Python, made once."""
    path = CACHE / f"image-base-{SUITE}-{hashlib.sha256(PACKAGES.encode()).hexdigest()[:12]}.tar"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        made = path.with_suffix(".new.tar")
        command = [
            str(program("mmdebstrap", "mmdebstrap").path),
            "--variant=extract",
            f"--include={PACKAGES}",
            SUITE,
            str(made),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
        if done.returncode != 0:
            raise ServerFailed(
                f"mmdebstrap failed; are the packages of Debian available?\n{done.stderr[-2000:]}"
            )
        made.rename(path)
    return path


def _wheels() -> Path:
    """The locked requirements of the image, downloaded once, by their hashes."""
    text = "".join((ROOT / "requirements" / name).read_text() for name in REQUIREMENTS)
    # Conditions are for the Python of the image, which may differ from this one.
    text = re.sub(r" ; [^\\\n]+", " ", text)
    folder = CACHE / f"image-wheels-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "requirements.txt").write_text(text)
        machine = platform.machine()
        command = [
            sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:",
            "--implementation", "cp", "--python-version", PYTHON, "--dest", str(folder),
            *(f"--platform={libc}_{machine}" for libc in LIBC),
            f"--requirement={folder / 'requirements.txt'}",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
        if done.returncode != 0:
            raise ServerFailed(f"pip download failed; is the package index available?\n{done.stderr[-2000:]}")
        (folder / "complete").touch()
    return folder


def _blob(layout: Path, digest: str) -> Path:
    return layout / "blobs" / digest.replace(":", "/")
