"""Copies what the image needs into a folder, from which deploy/Dockerfile makes it:
`python3 image_files.py FOLDER`.

Python with its standard library, the environment in /opt/duetime, the shared libraries that these load,
certificates, a shell and a few programs. The base image also has package managers, Perl, tables of character
sets."""

from __future__ import annotations

import compileall
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

ENVIRONMENT = Path("/opt/duetime")
USER = 65532
# A shell, what compose and `kubectl exec` use, and what a person looks with. Python is there for the rest.
PROGRAMS = ("sh", "cat", "env", "ls", "sleep", "true")
FILES = (
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/debian_version",
    "/etc/ssl",
    "/usr/lib/ssl",
    "/usr/share/ca-certificates",
)
# glibc loads these by name.
LOADED_LATE = ("libgcc_s.so.1", "libnss_dns.so.2", "libnss_files.so.2", "libresolv.so.2")
FOLDERS = ("app", "data", "dev", "proc", "run", "sys", "tmp", "var/tmp")
# Of the standard library. Nothing of it runs on a server.
LEFT_OUT = (
    "__pycache__", "config-*", "dist-packages", "ensurepip", "idlelib", "lib2to3", "pydoc_data",
    "site-packages", "test", "tests", "tkinter", "turtledemo",
    "_tkinter*.so", "_test*.so", "_ctypes_test*.so", "xxlimited*.so",
)  # fmt: skip


def main(folder: Path) -> None:
    copied = [*_python(folder), *_programs(folder)]
    shutil.copytree(
        ENVIRONMENT, _inside(folder, ENVIRONMENT), symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    for source in filter(Path.exists, map(Path, FILES)):
        copied.append(_copy(folder, source))
    copied += _libraries(folder)
    _strip(folder)
    _compile(folder)
    _accounts(folder)
    _packages(folder, copied)
    for name in FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in ("tmp", "var/tmp"):
        (folder / name).chmod(0o1777)
    shutil.chown(folder / "data", USER, USER)


def _inside(folder: Path, path: Path) -> Path:
    found = folder / path.relative_to("/")
    found.parent.mkdir(parents=True, exist_ok=True)
    return found


def _copy(folder: Path, path: Path) -> Path:
    """A folder, or a file under this name, even if it is a link."""
    if path.is_dir():
        shutil.copytree(path, _inside(folder, path), symlinks=True, dirs_exist_ok=True)
    else:
        shutil.copy2(path, _inside(folder, path))
    return path.resolve()


def _python(folder: Path) -> Iterator[Path]:
    link = ENVIRONMENT / "bin" / "python3"
    while link.is_symlink():
        link = link.parent / link.readlink()
        if link.is_symlink() and not link.is_relative_to(ENVIRONMENT):
            _inside(folder, link).symlink_to(link.readlink())
    yield _copy(folder, link)
    library = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(
        library, _inside(folder, library), symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT)
    )
    yield library / "os.py"


def _programs(folder: Path) -> Iterator[Path]:
    for name in PROGRAMS:
        found = shutil.which(name)
        if found is None:
            raise SystemExit(f"the base image has no program {name!r}")
        yield _copy(folder, Path(found))


def _libraries(folder: Path) -> Iterator[Path]:
    """Shared libraries of the system that the copied files need, and those that these need."""
    loader = _loader()
    wanted = {loader}
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and _is_elf(path):
            wanted |= _needed(loader, path)
    (home,) = {path.parent for path in wanted if path.name == "libc.so.6"}
    late = [home / name for name in LOADED_LATE]
    wanted.update(path for path in late if path.exists())
    for path in sorted(wanted):
        if not path.is_relative_to(ENVIRONMENT) and not _inside(folder, path).exists():
            yield _copy(folder, path)


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _loader() -> Path:
    """What starts programs: Python names it at its beginning."""
    with Path(sys.executable).open("rb") as file:
        found = re.search(rb"/lib[^\0]*/ld-[^\0]+", file.read(4096))
    if found is None:
        raise SystemExit(f"{sys.executable} names no loader")
    return Path(found[0].decode())


def _needed(loader: Path, path: Path) -> set[Path]:
    """As `ldd` does it, which not every base image has."""
    command = [str(loader), "--list", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if "cannot open shared object file" in done.stderr:
        raise SystemExit(f"{path} needs a library that is missing:\n{done.stderr}")
    words = (word for line in done.stdout.splitlines() for word in line.split())
    return {Path(word) for word in words if word.startswith("/")} - {path}


def _strip(folder: Path) -> None:
    """Without symbols for debuggers: half of the size of extension modules."""
    for path in _inside(folder, ENVIRONMENT).rglob("*.so*"):
        if _is_elf(path):
            subprocess.run(["strip", "--strip-unneeded", str(path)], check=True)  # noqa: S603, S607


def _compile(folder: Path) -> None:
    """Bytecode that is never compared with its source: a read-only root file system cannot keep a newer one,
    and layers may change the times of files."""
    for path in (Path(sysconfig.get_path("stdlib")), ENVIRONMENT):
        compileall.compile_dir(
            _inside(folder, path), quiet=2, workers=0, stripdir=str(folder), prependdir="/",
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )  # fmt: skip


def _accounts(folder: Path) -> None:
    (folder / "etc/passwd").write_text(
        f"root:x:0:0:root:/root:/bin/sh\nduetime:x:{USER}:{USER}:Duetime:/data:/bin/sh\n"
    )
    (folder / "etc/group").write_text(f"root:x:0:\nduetime:x:{USER}:\n")


def _packages(folder: Path, copied: list[Path]) -> None:
    """The entries of the Debian packages of these files, by which scanners know what is in the image."""
    database = Path("/var/lib/dpkg")
    files = {str(path) for path in copied} | {str(path).removeprefix("/usr") for path in copied}
    names = {
        listing.name.removesuffix(".list").partition(":")[0]
        for listing in (database / "info").glob("*.list")
        if not files.isdisjoint(listing.read_text().splitlines())
    }
    entries = (database / "status").read_text().strip().split("\n\n") if names else []
    kept = [entry for entry in entries if entry.partition("\n")[0].removeprefix("Package: ") in names]
    (folder / "var/lib/dpkg").mkdir(parents=True)
    (folder / "var/lib/dpkg/status").write_text("".join(f"{entry}\n\n" for entry in kept))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
