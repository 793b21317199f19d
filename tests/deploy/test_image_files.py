"""deploy/image_files.py, as far as it can be tried without building the image (`make image-test` does)."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.deploy.stack import DEPLOY

pytestmark = pytest.mark.skipif(not Path("/var/lib/dpkg/status").exists(), reason="needs Debian")
FILES = runpy.run_path(str(DEPLOY / "image_files.py"))


def test_scanners_find_the_packages_of_copied_files(tmp_path: Path) -> None:
    shell = Path("/bin/sh").resolve()
    FILES["_packages"](tmp_path, [shell])
    found = (tmp_path / "var/lib/dpkg/status").read_text()
    assert f"Package: {shell.name}\n" in found
    assert "\nVersion: " in found
    assert found.count("Package: ") == 1


def test_libraries_of_a_program_are_found() -> None:
    needed = FILES["_needed"](FILES["_loader"](), Path("/bin/sh").resolve())
    assert "libc.so.6" in {path.name for path in needed}
    assert all(path.exists() for path in needed)


def test_missing_library_ends_the_build(tmp_path: Path) -> None:
    """By an error that names the file, not by an image that does not start."""
    broken = tmp_path / "broken.so"
    broken.write_bytes(Path("/bin/sh").resolve().read_bytes().replace(b"libc.so.6\0", b"libX.so.6\0"))
    with pytest.raises(SystemExit, match=r"broken\.so needs a library that is missing"):
        FILES["_needed"](FILES["_loader"](), broken)
