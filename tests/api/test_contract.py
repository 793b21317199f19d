"""schemathesis over the whole OpenAPI document with all its checks: what it promises is what happens, and
nothing is a fault of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.servers.process import TIMEOUT, free_port

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture
def address() -> Iterator[str]:
    port = free_port()
    live = subprocess.Popen(
        [sys.executable, "-m", "tests.api.live", str(port)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert live.stdout is not None
        assert live.stdout.readline() == "serving\n"
        yield f"http://127.0.0.1:{port}"
    finally:
        live.terminate()
        live.communicate(timeout=TIMEOUT)


@pytest.fixture
def document(address: str, tmp_path: Path) -> Path:
    """schemathesis itself waits ten seconds for it, which is too short on a busy machine."""
    path = tmp_path / "openapi.json"
    with urlopen(f"{address}/openapi.json") as answer:
        path.write_bytes(answer.read())
    return path


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("phases", ["examples,coverage", "fuzzing,stateful"])
def test_service_conforms_to_its_document(address: str, document: Path, phases: str) -> None:
    options = {
        "--url": address,
        "--checks": "all",
        "--phases": phases,
        "--max-examples": "10",
        "--suppress-health-check": "too_slow",  # says something about this machine
        "--seed": "1",
        "--generation-database": "none",
    }
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        "--config-file",
        str(HERE / "schemathesis.toml"),
        "run",
        str(document),
        "--no-color",
        *(word for option in options.items() for word in option),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SCHEMATHESIS_HOOKS": "tests.api.hooks"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr
