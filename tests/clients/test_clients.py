"""Clients generated from /openapi.json by the tools of others: nothing is left out, they compile, and the main
flows work against a running service. The tools are installed by their lock files."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import httpx2 as httpx
import pytest

import duetime as dt
from duetime.api.server import address_of, listen, serving
from duetime.api.service import build
from duetime.config import Settings
from tests.api.conftest import RING
from tests.servers.tools import ROOT, installed
from tools.build_ui import npm_command

HERE = Path(__file__).parent
TYPESCRIPT = HERE / "typescript"
pytestmark = pytest.mark.slow


class LiveService(NamedTuple):
    address: str
    key: str


@pytest.fixture
async def live() -> AsyncIterator[LiveService]:
    app = dt.App("memory://")

    @app.task("greet", queue="greetings")
    async def greet(name: str) -> str:
        return f"hello {name}"

    with listen("127.0.0.1", 0) as socket:
        async with app.running(), serving(build(app, Settings(auth="keys"), ring=RING), socket):
            yield LiveService(address_of(socket, "http"), (await app.keys.create("k", ["admin"])).text)


@pytest.fixture
async def document(live: LiveService, tmp_path: Path) -> Path:
    async with httpx.AsyncClient(timeout=60) as client:
        found = await client.get(
            f"{live.address}/openapi.json", headers={"authorization": f"Bearer {live.key}"}
        )
    path = tmp_path / "openapi.json"
    path.write_text(found.text)
    return path


async def test_python_client(live: LiveService, document: Path, tmp_path: Path) -> None:
    folder = await asyncio.to_thread(
        installed, "clients", ROOT / "requirements" / "clients.txt", python_tools
    )
    python = folder / "bin" / "python"
    generator = [str(python.with_name("openapi-python-client")), "generate", "--fail-on-warning"]
    where = ["--meta", "none", "--path", str(document), "--output-path", str(tmp_path / "duetime_client")]
    await run(*generator, *where, path=python.parent)
    models = (tmp_path / "duetime_client" / "models" / "__init__.py").read_text()
    assert all(f'"{name}"' in models for name in ("NewJob", "NewSchedule", "SchedulePatch", "HttpTargetIn"))
    # The types of what is made from our document; client.py is the same for every document.
    checked = ["-m", "mypy", "--config-file=", "--follow-imports=silent", "--python-executable", str(python)]
    folders = [str(tmp_path / "duetime_client" / name) for name in ("api", "models")]
    await run(sys.executable, *checked, *folders)
    await run(str(python), str(HERE / "flows.py"), str(tmp_path), *live)


async def test_typescript_client(live: LiveService, document: Path, tmp_path: Path) -> None:
    folder = await asyncio.to_thread(installed, "node", TYPESCRIPT / "package-lock.json", node_tools)
    modules = folder / "node_modules"
    for name in ("flows.ts", "tsconfig.json", "package.json"):
        shutil.copy(TYPESCRIPT / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(modules)
    node = npm_command()[0]
    generator = str(modules / "openapi-typescript" / "bin" / "cli.js")
    await run(node, generator, str(document), "--output", "schema.d.ts", folder=tmp_path)
    await run(node, str(modules / "typescript" / "bin" / "tsc"), folder=tmp_path)
    await run(node, "flows.ts", *live, folder=tmp_path)


def test_every_operation_has_a_short_name_of_its_own() -> None:
    made = build(dt.App("memory://"), Settings()).openapi()
    names = [operation["operationId"] for path in made["paths"].values() for operation in path.values()]
    assert len(set(names)) == len(names)
    assert [name for name in names if "api" in name or "__" in name] == []
    assert made["components"]["securitySchemes"]["key"]["scheme"] == "bearer"


def test_requests_have_no_defaults_that_a_client_would_send() -> None:
    """They would replace what a task declares, and what an edit does not mention."""
    schemas = build(dt.App("memory://"), Settings()).openapi()["components"]["schemas"]
    assert '"default":' not in json.dumps(
        [list(schema["properties"].values()) for schema in schemas.values() if "properties" in schema]
    )


def python_tools(folder: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    locked = ["--require-hashes", "-r", str(ROOT / "requirements" / "clients.txt")]
    # Few of the modules are used: compiling all of them takes longer than that.
    quiet = ["--quiet", "--disable-pip-version-check", "--no-compile"]
    pip = ["-m", "pip", "--python", str(folder / "bin" / "python"), "install", *quiet, *locked]
    subprocess.run([sys.executable, *pip], check=True)


def node_tools(folder: Path) -> None:
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(TYPESCRIPT / name, folder)
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    command = npm_command()
    path = f"{Path(command[0]).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run([*command, "ci", *quiet], cwd=folder, env={**os.environ, "PATH": path}, check=True)


async def run(*command: str, folder: Path | None = None, path: Path | None = None) -> None:
    environment = {**os.environ, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
