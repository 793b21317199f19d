"""Where the file is: from URL to path, and whether SQLite is reliable there."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from duetime.errors import ConfigError

REMEDY = 'write "sqlite:///file.db" (three slashes, relative) or "sqlite:////folder/file.db" (four, absolute)'
# Their locks are missing or unreliable, and the shared memory of the write-ahead log does not cross hosts.
NETWORK_FILESYSTEMS = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "fuse.sshfs",
        "fuse.glusterfs",
    }
)
MOUNTS = Path("/proc/mounts")


def path_of(url: str) -> Path:
    """The absolute path this URL names."""
    parts = urlsplit(url)
    if parts.query or parts.fragment:
        option = parts.query.partition("=")[0] or f"#{parts.fragment}"
        raise ConfigError(f"store: the SQLite store has no option {option!r}: {REMEDY}")
    if parts.netloc:
        raise ConfigError(f"store: {url!r} names a host {parts.netloc!r}: {REMEDY}")
    name = unquote(parts.path.removeprefix("/"))
    if name in ("", ":memory:"):
        raise ConfigError(
            f'store: {url!r} does not name a file: {REMEDY}; for data that may end with the process use "memory://"'
        )
    return Path(name).absolute()


def check(path: Path) -> None:
    """Refuse, with the remedy, a place that would fail later with an obscure error."""
    folder = path.parent
    if not folder.is_dir():
        raise ConfigError(f"store: the folder {folder} does not exist: create it, or name another file")
    if path.is_dir():
        raise ConfigError(f"store: {path} is a folder: name a file in it")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(
            f"store: the folder {folder} is not writable: SQLite keeps its log next to the file; allow "
            "writing or name another folder"
        )
    kind = filesystem_of(folder, _mounts())
    if kind in NETWORK_FILESYSTEMS:
        raise ConfigError(
            f"store: {path} is on a network filesystem ({kind}), where SQLite loses data: use a local "
            "disk, or postgresql://"
        )


def filesystem_of(folder: Path, mounts: str) -> str | None:
    """The kind of filesystem, by the longest mount point that holds the folder; the last mount on a point
    hides the others."""
    real = f"{folder.resolve()}/"  # texts are quicker than paths: a machine may have a hundred mounts
    found: tuple[int, str] | None = None
    for line in mounts.splitlines():
        _, point, kind, *_ = [*line.split(" "), "", "", ""]
        mounted = point.replace("\\040", " ").rstrip("/") + "/"
        if point and real.startswith(mounted) and (found is None or len(mounted) >= found[0]):
            found = (len(mounted), kind)
    return found[1] if found else None


def _mounts() -> str:
    try:
        return MOUNTS.read_text("utf-8", errors="replace")
    except OSError:
        return ""
