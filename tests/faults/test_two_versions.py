"""The version before and the next one on one database."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.two_versions import upgrade_run


@pytest.mark.slow
async def test_wheels_of_two_versions_replace_one_another(postgres_url: str, tmp_path: Path) -> None:
    account = await upgrade_run(postgres_url, tmp_path, kills=0, seed=1)
    account.check()
    assert account.jobs > 50
