"""Demo mode: a local LinkedIn in its own process, and all data in one folder."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from momentum.cli.options import secret_keys
from momentum.errors import ConfigError
from momentum.platforms.linkedin.settings import LinkedInSettings
from momentum.settings import Settings

DATA_FOLDER = Path("momentum-data")
LINKEDIN_PORT = 8090
CLIENT_ID, CLIENT_SECRET = "momentum", "sandbox-secret"
READY = b"ready on"
START_TIMEOUT = 30.0  # seconds
STOP_TIMEOUT = 5.0


def demo_settings(data: Path, key_file: Path | None, **given: Any) -> Settings:
    """The local LinkedIn knows companies, so the demo shows them, too."""
    data.mkdir(parents=True, exist_ok=True)
    folder = data.resolve()
    address = f"http://127.0.0.1:{_port(LINKEDIN_PORT if given['port'] else 0)}"
    return Settings(
        database=f"sqlite:///{folder / 'momentum.db'}",
        media=f"file://{folder / 'media'}",
        secret_keys=secret_keys(key_file),
        linkedin=LinkedInSettings(
            client_id=CLIENT_ID,
            client_secret=CLIENT_SECRET,
            web_url=address,
            api_url=address,
            organizations=True,
            grace=1.0,
        ),
        demo=True,
        **given,
    )


@asynccontextmanager
async def running_sandbox(data: Path, url: str) -> AsyncIterator[None]:
    """The process `python -m momentum.sandbox`, until the block ends."""
    folder = data / "linkedin"
    folder.mkdir(parents=True, exist_ok=True)
    port = str(urlsplit(url).port)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "momentum.sandbox",
        "--port",
        port,
        "--data",
        str(folder),
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C reaches it through us, after the posts in progress
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_TIMEOUT):
            while READY not in (line := await process.stdout.readline()):
                if not line:
                    raise ConfigError(f"demo: the local LinkedIn did not start on port {port}: see above")
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        try:
            async with asyncio.timeout(STOP_TIMEOUT):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def _port(wanted: int) -> int:
    """The same one each time, so that links to published posts go on working; another one if it is used."""
    with socket.socket() as candidate:
        candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            candidate.bind(("127.0.0.1", wanted))
        except OSError:
            candidate.bind(("127.0.0.1", 0))
        port: int = candidate.getsockname()[1]
        return port
