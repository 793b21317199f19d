"""Two versions of Duetime on one PostgreSQL: workers of both are killed at random under load, while the newer one
migrates the schema. No acknowledged job may be lost, start early or be completed twice, and no worker of the
older version may stop.

The newer version is this source tree with a higher version and two more migrations: one that expands and one
that contracts. It shows that a program works, restarts and joins on a schema that it does not know, that a
migration does not stop it, and that it is not left behind. It cannot show that a future migration keeps its word.

python -m tests.faults.two_versions --kills 40
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from random import Random

from duetime.stores.postgres.schema import MIGRATIONS
from duetime.version import VERSION
from tests.faults.fleet import Fleet
from tests.faults.random_kills import HEADER, LEASE, Account, KilledStore, Run, started

ROOT = Path(__file__).parents[2]
KNOWN = len(MIGRATIONS)
NEW_VERSION = "99.0.0"
EXPAND = """-- A column with a default that every insert of either version fills, and an index.
ALTER TABLE duetime.jobs ADD COLUMN later bigint DEFAULT 7;
CREATE INDEX jobs_later ON duetime.jobs (queue, later) WHERE later IS NULL;
"""
CONTRACT = f"""-- Drop the index that only versions before {NEW_VERSION} use.
-- contract: from {KNOWN + 1}, needs {NEW_VERSION}
DROP INDEX duetime.jobs_later;
"""


@dataclass(frozen=True, slots=True)
class Version:
    """A source tree, as its wheel holds it."""

    path: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": os.pathsep.join([str(self.path), str(ROOT)])}

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "duetime", *words], env=self.environment, capture_output=True, text=True,
            check=False, cwd=self.path,
        )  # fmt: skip


def old_version() -> Version:
    return Version(ROOT / "src")


def new_version(folder: Path, *migrations: str) -> Version:
    made = folder / "new"
    shutil.copytree(
        ROOT / "src" / "duetime", made / "duetime", ignore=shutil.ignore_patterns("__pycache__", "static")
    )
    for number, text in enumerate(migrations, KNOWN + 1):
        (made / "duetime/stores/postgres/migrations" / f"{number:04}_later.sql").write_text(text)
    version = made / "duetime/version.py"
    version.write_text(version.read_text().replace(VERSION, NEW_VERSION))
    return Version(made)


class TwoVersions(Fleet):
    """Workers of these versions in turn."""

    def __init__(self, store: str, folder: Path, *versions: Version) -> None:
        super().__init__(store, folder, LEASE)
        self.versions = versions
        self.by_version: dict[int, Version] = {}

    def spawn(self, *_: object, **__: object) -> subprocess.Popen[bytes]:
        version = self.versions[len(self.workers) % len(self.versions)]
        worker = super().spawn(environment=version.environment)
        self.by_version[worker.pid] = version
        return worker


class MigratingRun(Run):
    """The server stays; instead the schema is migrated."""

    def __init__(self, fleet: TwoVersions, url: str, new: Version, random: Random) -> None:
        super().__init__(fleet, KilledStore(url, self._migrate), random)
        self._fleet: TwoVersions = fleet
        self._url, self._new = url, new
        self.migrated = ""

    def _migrate(self) -> None:
        done = self._new.command("migrate", "--store", self._url)
        assert done.returncode == 0, done.stderr
        self.migrated = done.stdout.strip()
        self._fleet.versions = (old_version(), self._new)  # before, only the older one had its schema


async def upgrade_run(url: str, folder: Path, kills: int, seed: int) -> Account:
    """Kill workers before and after the migration, then those of both versions."""
    old, new = old_version(), new_version(folder, EXPAND)
    async with TwoVersions(url, folder, old) as fleet:
        run = MigratingRun(fleet, url, new, Random(seed))
        account = await run.kill(kills)
        assert run.migrated == f"schema {KNOWN} -> {KNOWN + 1}"
        effects = {event["pid"] for event in fleet.seen("effect")}
        for version in (old, new):
            assert effects & {pid for pid, used in fleet.by_version.items() if used == version}, (
                f"no worker of {version.path} did anything"
            )
        return account


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.two_versions", description=__doc__)
    parser.add_argument("--kills", type=int, default=40, help="of workers (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, started("postgres", Path(folder)) as store:
        account = asyncio.run(upgrade_run(store.url, Path(folder), options.kills, options.seed))
    sys.stdout.write(f"{HEADER}\n{account.row('postgres, two versions')}\n")
    account.check()


if __name__ == "__main__":
    main()
