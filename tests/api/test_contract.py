"""schemathesis over the whole OpenAPI document with all its checks: what it promises is what happens, and
nothing is a fault of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.process import free_port

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
        live.communicate(timeout=20)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("phases", ["examples,coverage", "fuzzing,stateful"])
def test_service_conforms_to_its_document(address: str, phases: str) -> None:
    program = str(Path(sys.executable).with_name("schemathesis"))
    command = [
        program,
        "--config-file",
        str(HERE / "schemathesis.toml"),
        "run",
        f"{address}/openapi.json",
        "--checks",
        "all",
    ]
    command += [
        "--phases",
        phases,
        "--max-examples",
        "15",
        "--seed",
        "1",
        "--generation-database",
        "none",
        "--no-color",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SCHEMATHESIS_HOOKS": "tests.api.hooks"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8_000:] + done.stderr
