"""Giving a complete file a name that no other file has."""

from __future__ import annotations

import errno
import os
from pathlib import Path

# What file systems without hard links answer: exFAT, FAT and some network shares.
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


def name_file(draft: Path, path: Path) -> None:
    """The draft under its name. FileExistsError if the name is taken, also by a process that does the same.
    The draft may be left or gone."""
    try:
        os.link(draft, path)
    except OSError as problem:
        if problem.errno not in _NO_HARD_LINKS:
            raise
        _rename(draft, path)


def _rename(draft: Path, path: Path) -> None:
    """A rename replaces what has the name, so an empty file of our own takes it first."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        os.replace(draft, path)
    except BaseException:
        path.unlink()
        raise
