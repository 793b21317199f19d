"""Two versions of Duetime on one PostgreSQL, each as a wheel in an environment of its own. A fleet of the older one
goes to the newer one, back, and forward again, while its nodes are killed under load and the schema is migrated. No
acknowledged job may be lost, start early or be completed twice, and no fire may be missing.

The older version is the wheel of this source tree. The newer one is the same with a higher version and one more
migration, which expands; a third one has another, which contracts. It shows that a program works, restarts and joins on
a schema that it does not know, that a migration does not stop it, and that it can come back until the schema
contracts. It cannot show that a future migration keeps its word.

python -m tests.faults.two_versions --kills 40
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path
from random import Random

import duetime as dt
from duetime.stores.postgres.schema import MIGRATIONS
from duetime.version import VERSION
from tests.faults.fleet import Fleet
from tests.faults.random_kills import HEADER, LEASE, Account, KilledStore, Run, started

ROOT = Path(__file__).parents[2]
KNOWN = len(MIGRATIONS)
NEW_VERSION, LAST_VERSION = "99.0.0", "99.1.0"
EXPAND = """-- A column with a default that every insert of either version fills, and an index.
ALTER TABLE duetime.jobs ADD COLUMN later bigint DEFAULT 7;
CREATE INDEX jobs_later ON duetime.jobs (queue, later) WHERE later IS NULL;
"""
CONTRACT = f"""-- Drop the index that only versions before {NEW_VERSION} use.
-- contract: from {KNOWN + 1}, needs {NEW_VERSION}
DROP INDEX duetime.jobs_later;
"""
SOURCES = ("LICENSE", "README.md", "hatch_build.py", "pyproject.toml", "src", "tools")
INTERVAL = 1  # seconds between two fires
LOOKAHEAD = 1  # seconds; short, so that each planner has something to plan
PLANNER, WORKER = "planner", "worker"
NODES = (PLANNER, WORKER, WORKER)


@dataclass(frozen=True, slots=True)
class Version:
    """A wheel in an environment of its own. Other packages are those of this environment."""

    number: str
    folder: Path

    @property
    def python(self) -> str:
        return str(self.folder / "bin" / "python")

    @property
    def environment(self) -> dict[str, str]:
        """The program of the workers is in `tests`; the package is that of the wheel."""
        return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.folder / "bin" / "duetime"), *words], capture_output=True, text=True, check=False,
            cwd=self.folder, env={**self.environment, "PYTHONPATH": ""},
        )  # fmt: skip


def old_version(folder: Path) -> Version:
    return _installed(VERSION, ROOT, folder / VERSION)


def later_version(folder: Path, version: str, *migrations: str) -> Version:
    source = folder / f"source-{version}"
    source.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    for number, text in enumerate(migrations, KNOWN + 1):
        path = source / "src/duetime/stores/postgres/migrations" / f"{number:04}_later.sql"
        path.write_text(text)
    for name in ("src/duetime/version.py", "pyproject.toml"):
        text = (source / name).read_text()
        (source / name).write_text(text.replace(f'"{VERSION}"', f'"{version}"', 1))
    return _installed(version, source, folder / version)


def _installed(number: str, source: Path, folder: Path) -> Version:
    """Builds the wheel and installs it, without a network."""
    made = Version(number, folder)
    _run(source, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist"))
    (wheel,) = (folder / "dist").glob(f"duetime-{number}-*.whl")
    venv.create(folder)
    # The first process compiles what is needed, for the others.
    install = ("install", "--quiet", "--no-compile", "--no-deps", "--no-index", str(wheel))
    _run(folder, "-m", "pip", "--python", made.python, *install)
    library = sysconfig.get_path("purelib", vars={"base": str(folder)})
    Path(library, "others.pth").write_text(sysconfig.get_path("purelib"))
    return made


def _run(folder: Path, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


class TwoVersions(Fleet):
    """Nodes of either version, with one role each."""

    def __init__(self, store: str, folder: Path) -> None:
        super().__init__(store, folder, LEASE)
        self.nodes: dict[int, tuple[Version, str]] = {}

    def start(self, version: Version, role: str) -> subprocess.Popen[bytes]:
        own = {"WORKER_ROLES": role, "WORKER_LOOKAHEAD": f"{LOOKAHEAD}s"}
        node = self.spawn(environment={**version.environment, **own}, python=version.python)
        self.nodes[node.pid] = version, role
        return node

    def living(self, version: Version, role: str) -> list[subprocess.Popen[bytes]]:
        return [
            node for node in self.workers if self.nodes[node.pid] == (version, role) and node.poll() is None
        ]


class UpgradeRun(Run):
    """Instead of a killed server: versions that come and go."""

    def __init__(self, fleet: TwoVersions, versions: tuple[Version, ...], random: Random) -> None:
        super().__init__(fleet, KilledStore(fleet.store), random)
        self._fleet: TwoVersions = fleet
        self._old, self._new, self._last = versions

    async def run(self, kills: int) -> Account:
        """`kills`: of workers while both versions work, in addition to the nodes that are replaced."""
        for role in NODES:
            self._fleet.start(self._old, role)
        await self._fleet.joined(len(NODES))
        await self._fleet.app.schedule("tick", "work", dt.Every(f"{INTERVAL}s"), missed=dt.Missed("all"))
        load = asyncio.create_task(self._submit())
        await self._migrate(self._new, KNOWN, KNOWN + 1)
        await self._replace(self._old, self._new, (PLANNER, WORKER, WORKER), kills // 3)
        # Back, before anything contracts: the older version starts on the newer schema. One newer worker stays.
        await self._replace(self._new, self._old, (WORKER, PLANNER), kills // 3)
        await self._refused_while_old_nodes_live()
        await self._replace(self._old, self._new, (WORKER, PLANNER), kills - 2 * (kills // 3))
        await self._migrate(self._last, KNOWN + 1, KNOWN + 2)
        await self._kill_a_worker()  # the newer version starts on the last schema
        load.cancel()
        await asyncio.wait([load])
        account = self._account(await self._unfinished(), await self._doubled())
        await self._fleet.check_fires("tick", INTERVAL)
        return account

    async def _migrate(self, version: Version, before: int, after: int) -> None:
        done = await asyncio.to_thread(version.command, "migrate", "--store", self._fleet.store)
        assert done.stdout.strip() == f"schema {before} -> {after}", done.stderr

    async def _refused_while_old_nodes_live(self) -> None:
        words = ("migrate", "--store", self._fleet.store)
        planned = await asyncio.to_thread(self._last.command, *words, "--plan", "--json")
        plan = json.loads(planned.stdout)
        assert [(step["phase"], step["needs"]) for step in plan["steps"]] == [("contract", NEW_VERSION)]
        assert len(plan["old_nodes"]) >= 2  # the planner and a worker; a killed one may still be shown
        refused = await asyncio.to_thread(self._last.command, *words)
        assert refused.stderr.endswith("[migration_refused]\n"), refused.stderr

    async def _replace(self, before: Version, after: Version, order: tuple[str, ...], kills: int) -> None:
        """Kill a node of one version and start one of the other, role by role."""
        for number, role in enumerate(order):
            victim = self._random.choice(self._fleet.living(before, role))
            self._kill_node(victim)
            node = self._fleet.start(after, role)
            await self._works(node, role)
            for _ in range(kills * (number + 1) // len(order) - kills * number // len(order)):
                await self._kill_a_worker()
        versions = {node.version for node in await self._fleet.app.nodes() if not node.dead}
        assert after.number in versions

    def _kill_node(self, node: subprocess.Popen[bytes]) -> None:
        node.kill()
        self._killed[node.pid] = time.time()
        node.wait()

    async def _kill_a_worker(self) -> None:
        """One of either version that has run jobs; another of the same version takes its place."""
        await asyncio.sleep(self._random.uniform(0.1, 0.8))
        victim = self._random.choice(
            [node for node in self._working() if self._fleet.nodes[node.pid][1] == WORKER]
        )
        self._kill_node(victim)
        await self._works(self._fleet.start(*self._fleet.nodes[victim.pid]), WORKER)

    async def _works(self, node: subprocess.Popen[bytes], role: str) -> None:
        began = time.time()

        async def worker_works() -> bool:
            assert node.poll() is None, self._fleet.logs()
            return node in self._working()

        async def planner_works() -> bool:
            """There is no other: fires after the look-ahead of the killed one are its own."""
            assert node.poll() is None, self._fleet.logs()
            fires = await self._fleet.app.jobs(schedule="tick", limit=500)
            return any(fire.fire_time.timestamp() > began + LOOKAHEAD for fire in fires)

        await self._fleet.until(planner_works if role == PLANNER else worker_works, f"a {role} to work")


async def upgrade_run(url: str, folder: Path, kills: int, seed: int) -> Account:
    """Forward, back, forward again, and the last step of the migration when no older node is left."""
    versions = old, new, _ = tuple(
        await asyncio.gather(
            asyncio.to_thread(old_version, folder),
            asyncio.to_thread(later_version, folder, NEW_VERSION, EXPAND),
            asyncio.to_thread(later_version, folder, LAST_VERSION, EXPAND, CONTRACT),
        )
    )
    assert old.command("migrate", "--store", url).returncode == 0
    async with TwoVersions(url, folder) as fleet:
        account = await UpgradeRun(fleet, versions, Random(seed)).run(kills)
        effects = {event["pid"] for event in fleet.seen("effect")}
        for version in (old, new):
            known = {pid for pid, (used, _) in fleet.nodes.items() if used == version}
            assert effects & known, f"no worker of {version.number} did anything"
    refused = old.command("job", "list", "--store", url)
    assert refused.stderr.endswith("[schema_too_new]\n"), refused.stderr
    assert new.command("job", "list", "--store", url).returncode == 0
    return account


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.two_versions", description=__doc__)
    parser.add_argument(
        "--kills", type=int, default=40, help="of workers, besides replaced nodes (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, started("postgres", Path(folder)) as store:
        account = asyncio.run(upgrade_run(store.url, Path(folder), options.kills, options.seed))
    sys.stdout.write(f"{HEADER}\n{account.row('postgres, two versions')}\n")
    account.check()


if __name__ == "__main__":
    main()
