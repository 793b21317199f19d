"""The same seed gives the same run: in this process, in another process, and with any hash seed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from duetime.testing.simulation import run_seed
from duetime.testing.simulation.__main__ import main

pytestmark = pytest.mark.slow

SEEDS = (1, 7, 42, 108)
PRINT_HASHES = """
import sys
from duetime.testing.simulation import run_seed
print(*(run_seed(int(seed)).trace_hash for seed in sys.argv[1:]))
"""


@pytest.mark.parametrize("seed", SEEDS)
def test_same_seed_gives_the_same_trace(seed: int) -> None:
    first, second = run_seed(seed, keep_trace=True), run_seed(seed, keep_trace=True)
    assert first.trace == second.trace
    assert first.trace_hash == second.trace_hash
    assert first.steps == second.steps


def test_trace_does_not_depend_on_process_or_hash_seed() -> None:
    hashes = [_hashes_with(hash_seed) for hash_seed in ("1", "2")]
    assert hashes[0] == hashes[1] == [run_seed(seed).trace_hash for seed in SEEDS]


def test_different_seeds_give_different_traces() -> None:
    assert len({run_seed(seed).trace_hash for seed in SEEDS}) == len(SEEDS)


def test_command_line_replays_a_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "3", "--trace"]) == 0
    printed = capsys.readouterr().out
    assert "n1 joins as" in printed
    assert f"seed 3: ok ({run_seed(3).trace_hash}" in printed
    assert "commands.after_add" in printed


def _hashes_with(hash_seed: str) -> list[str]:
    command = [sys.executable, "-c", PRINT_HASHES, *map(str, SEEDS)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split()
