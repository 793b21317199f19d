"""A complete file gets a name that no other file has, with and without hard links."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from duetime.archives.folder import Folder
from duetime.exclusive_file import name_file

WITHOUT = [errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP]


@pytest.fixture(params=[None, *WITHOUT])
def draft(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """On a file system that has hard links, or answers so because it has none."""

    def fail(*_: object) -> None:
        raise OSError(request.param, os.strerror(request.param))

    if request.param is not None:
        monkeypatch.setattr("os.link", fail)
    made = tmp_path / "draft"
    made.write_bytes(b"new")
    return made


def test_free_name_is_taken(draft: Path, tmp_path: Path) -> None:
    name_file(draft, tmp_path / "name")
    assert (tmp_path / "name").read_bytes() == b"new"


def test_existing_file_is_never_overwritten(draft: Path, tmp_path: Path) -> None:
    (tmp_path / "name").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        name_file(draft, tmp_path / "name")
    assert (tmp_path / "name").read_bytes() == b"old"


def test_failed_rename_leaves_nothing_under_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EPERM, "no hard links")

    monkeypatch.setattr("os.link", fail)
    with pytest.raises(FileNotFoundError):
        name_file(tmp_path / "missing", tmp_path / "name")
    assert list(tmp_path.iterdir()) == []


def test_other_errors_are_passed_on(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        name_file(tmp_path / "missing", tmp_path / "name")
    assert list(tmp_path.iterdir()) == []


async def test_archive_is_written_once_and_leaves_no_draft(draft: Path, tmp_path: Path) -> None:
    draft.unlink()
    folder = Folder(tmp_path)
    await folder.create("part", b"first")
    await folder.create("part", b"second")
    assert await folder.read("part") == b"first"
    assert [one.name for one in tmp_path.iterdir()] == ["part"]
