"""The Dockerfile and the workflows of GitHub, by their linters."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.stack import BIN, DEPLOY, ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def run(program: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / program), *map(str, words)], capture_output=True, text=True, check=False, cwd=ROOT
    )


def workflow(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(path.read_text("utf-8"), yaml.BaseLoader)
    return found


def test_dockerfile_has_no_warnings() -> None:
    done = run("hadolint", "--no-color", "--failure-threshold", "warning", DEPLOY / "Dockerfile")
    assert done.returncode == 0, done.stdout


def test_dockerfile_and_ignore_file_name_the_same_sources() -> None:
    """A file that is copied and ignored would end every build."""
    kept = {
        line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")
    }
    lines = (DEPLOY / "Dockerfile").read_text("utf-8").splitlines()
    copied = {
        word
        for line in lines
        if line.startswith("COPY ") and "--from" not in line
        for word in line.split()[1:-1]
    }
    assert copied == kept


def test_image_has_the_version_of_the_package() -> None:
    from duetime.version import VERSION

    assert f"ARG VERSION={VERSION}\n" in (DEPLOY / "Dockerfile").read_text("utf-8")


def test_workflows_are_workflows() -> None:
    done = run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *WORKFLOWS)
    assert done.returncode == 0, done.stdout


def test_workflows_are_safe() -> None:
    done = run("zizmor", "--offline", "--persona=auditor", "--no-progress", *WORKFLOWS)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_hash(path: Path) -> None:
    lines = re.findall(r"uses: (.*)", path.read_text("utf-8"))
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def test_tests_run_on_every_declared_python() -> None:
    declared = re.findall(
        r'"Programming Language :: Python :: (\d\.\d+)"', (ROOT / "pyproject.toml").read_text("utf-8")
    )
    assert (
        workflow(ROOT / ".github/workflows/test.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
        == declared
    )


def test_targets_of_make_exist() -> None:
    text = (ROOT / "Makefile").read_text("utf-8")
    used = {
        word for path in WORKFLOWS for word in re.findall(r"run: make ([a-z-]+)", path.read_text("utf-8"))
    }
    used |= set(workflow(ROOT / ".github/workflows/image.yml")["jobs"]["try"]["strategy"]["matrix"]["target"])
    assert {"test", "stop", "start-fleet"} <= used
    assert [name for name in used if not re.search(rf"^{name}:", text, re.MULTILINE)] == []


@pytest.mark.parametrize(
    "path",
    [
        *WORKFLOWS, *(DEPLOY / "systemd").iterdir(), *(DEPLOY / "terraform").glob("*.tf"), DEPLOY / "Dockerfile", DEPLOY / "compose.yaml",
        DEPLOY / "haproxy.cfg", DEPLOY / "run", DEPLOY / "helm/duetime/Chart.yaml", DEPLOY / "kubernetes/duetime.yaml",
    ],
    ids=lambda path: path.name,
)  # fmt: skip
def test_head_says_what_was_not_tried(path: Path) -> None:
    head = "\n".join(path.read_text("utf-8").splitlines()[:20])
    assert re.search("not tried", head, re.IGNORECASE)


def test_image_has_the_locked_versions() -> None:
    def pins(name: str) -> set[str]:
        return set(
            re.findall(r"^[\w.-]+==\S+", (ROOT / "requirements" / name).read_text("utf-8"), re.MULTILINE)
        )

    assert pins("image.txt") < pins("run.txt")
