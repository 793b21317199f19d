"""The version before and the next one on one database."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.faults.fleet import Fleet
from tests.faults.two_versions import (
    CONTRACT,
    EXPAND,
    KNOWN,
    NEW_VERSION,
    new_version,
    old_version,
    upgrade_run,
)


@pytest.mark.slow
async def test_two_versions_work_through_a_migration(postgres_url: str, tmp_path: Path) -> None:
    account = await upgrade_run(postgres_url, tmp_path, kills=6, seed=1)
    account.check()
    assert account.jobs > 50


async def test_contraction_waits_for_old_nodes(postgres_url: str, tmp_path: Path) -> None:
    old, new = old_version(), new_version(tmp_path, EXPAND, CONTRACT)
    async with Fleet(postgres_url, tmp_path, "2s") as fleet:
        worker = fleet.spawn(environment=old.environment)
        await fleet.joined(1)
        plan = json.loads(new.command("migrate", "--plan", "--json", "--store", postgres_url).stdout)
        assert [(step["phase"], step["needs"]) for step in plan["steps"]] == [
            ("expand", None),
            ("contract", NEW_VERSION),
        ]
        assert plan["steps"][0]["locks"] == ["duetime.jobs"]
        assert len(plan["old_nodes"]) == 1
        refused = new.command("migrate", "--store", postgres_url)
        assert refused.returncode == 1
        assert refused.stderr.endswith("[migration_refused]\n"), refused.stderr
        # What only adds is done: the older version works and starts on it.
        assert old.command("job", "list", "--store", postgres_url).returncode == 0
        job = await fleet.app.submit("work")
        await job.wait(timeout="60s")
        worker.terminate()
        worker.wait()
    done = new.command("migrate", "--store", postgres_url)
    assert done.stdout.strip() == f"schema {KNOWN + 1} -> {KNOWN + 2}", done.stderr
    refused = old.command("job", "list", "--store", postgres_url)
    assert refused.stderr.endswith("[schema_too_new]\n"), refused.stderr
    assert new.command("job", "list", "--store", postgres_url).returncode == 0
