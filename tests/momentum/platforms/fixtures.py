"""The local LinkedIn for tests: a real process on a free port. Import the fixtures `sandbox_process` and
`sandbox` in a conftest."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from momentum.model import Author, AuthorKind, Content, Media, MediaKind, Post, PostState
from momentum.platform import Access, MediaFile, Upload
from momentum.platforms.linkedin import LinkedIn, LinkedInSettings
from tests.servers.process import ServerProcess, free_port

CLIENT_ID, CLIENT_SECRET = "momentum", "sandbox-secret"


class SandboxProcess:
    """The process, and its state in a folder: it can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: ServerProcess | None = None

    def start(self) -> None:
        command: list[str | Path] = [
            sys.executable,
            "-m",
            "momentum.sandbox",
            "--port",
            str(self.port),
            "--data",
            self.folder,
        ]
        environment = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
        self._process = ServerProcess(command, "ready on", self.folder, environment, owner={})
        self._process.wait_ready()

    def stop(self) -> None:
        if self._process is not None:
            self._process.end(signal.SIGTERM)
            self._process = None


@contextmanager
def running_sandbox(folder: Path) -> Iterator[SandboxProcess]:
    process = SandboxProcess(folder)
    process.start()
    try:
        yield process
    finally:
        process.stop()


@pytest.fixture(scope="session")
def sandbox_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with running_sandbox(tmp_path_factory.mktemp("sandbox")) as process:
        yield process


@dataclass
class Sandbox:
    """The local LinkedIn as a test sees it."""

    url: str
    http: aiohttp.ClientSession

    def settings(self, **changes: Any) -> LinkedInSettings:
        """Settings of a client of this sandbox."""
        fields: dict[str, Any] = {"client_id": CLIENT_ID, "client_secret": CLIENT_SECRET, "grace": 0.0}
        return LinkedInSettings(**{**fields, "web_url": self.url, "api_url": self.url, **changes})

    async def faults(self, kind: str, route: str = "posts.create", **fields: Any) -> None:
        """Script a fault: `author`, `times`, `skip`, `every`, `seconds`, `status`, `body`."""
        await self._call("POST", "/sandbox/faults", {"kind": kind, "route": route, **fields})

    async def scripted(self) -> list[dict[str, Any]]:
        """The scripted faults, with how many requests they have seen and hit."""
        return list((await self._call("GET", "/sandbox/faults"))["faults"])

    async def no_faults(self) -> None:
        await self._call("DELETE", "/sandbox/faults")

    async def change(self, **settings: Any) -> None:
        """Change settings of the sandbox, such as `member_daily_limit` or `processing_seconds`."""
        await self._call("POST", "/sandbox/settings", settings)

    async def posts(self) -> list[dict[str, Any]]:
        """All posts, oldest first."""
        return list((await self._call("GET", "/sandbox/posts"))["posts"])

    async def assets(self) -> list[dict[str, Any]]:
        return list((await self._call("GET", "/sandbox/assets"))["assets"])

    async def usage(self, member: str = "") -> int:
        """Requests of a member, or of the whole app, today."""
        rows = (await self._call("GET", "/sandbox/usage"))["usage"]
        return sum(row["requests"] for row in rows if row["who"] == member)

    async def access(
        self, member: str = "m-1_a", organization: int | None = None, scopes: str | None = None
    ) -> Access:
        """An account with a token, created if it does not exist; with `organization`, that of the
        organization, which the member manages."""
        body = {"member": member, "organization": organization, "scopes": scopes}
        answer = await self._call("POST", "/sandbox/tokens", body)
        kind = AuthorKind.MEMBER if organization is None else AuthorKind.ORGANIZATION
        author = Author(answer["author"], answer["name"], kind)
        return Access(author, answer["token"], tuple(answer["scopes"]))

    async def reset(self) -> None:
        await self._call("POST", "/sandbox/reset")

    async def _call(self, method: str, path: str, body: Any = None) -> Any:
        async with self.http.request(method, f"{self.url}{path}", json=body) as response:
            assert response.status < 300, await response.text()
            return await response.json() if response.status == 200 else None


@pytest.fixture
async def sandbox(sandbox_process: SandboxProcess) -> AsyncIterator[Sandbox]:
    """As on its first day, for each test."""
    async with aiohttp.ClientSession() as http:
        sandbox = Sandbox(sandbox_process.url, http)
        await sandbox.reset()
        await sandbox.change(processing_seconds=0)
        yield sandbox


@dataclass
class CountingMeter:
    """A budget without a limit."""

    requests: int = 0

    async def spend(self, requests: int = 1) -> None:
        self.requests += requests


@dataclass
class SavedUploads:
    """What was saved of an upload, as a database would have it."""

    saved: list[Upload] = field(default_factory=list)

    async def __call__(self, upload: Upload) -> None:
        self.saved.append(deepcopy(upload))


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000000301"
    "0100c9fe92ef0000000049454e44ae426082"
)
PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
TYPES = {MediaKind.IMAGE: "image/png", MediaKind.DOCUMENT: "application/pdf", MediaKind.VIDEO: "video/mp4"}


def media_file(kind: MediaKind, content: bytes, name: str = "file", media_id: str = "med_1") -> MediaFile:
    media = Media(media_id, "default", kind, TYPES[kind], name, len(content), "", datetime.now(UTC))

    async def read(first: int, count: int) -> bytes:
        return content[first : first + count]

    async def stream() -> AsyncIterator[bytes]:
        for first in range(0, len(content), 65_536):
            yield content[first : first + 65_536]

    return MediaFile(media, read, stream)


def video_bytes(size: int) -> bytes:
    """The beginning of an MP4 file, and bytes that differ everywhere."""
    pattern = b"".join(number.to_bytes(4, "big") for number in range(1, 65_536))
    return (b"\0\0\0\x18ftypisom" + pattern * (size // len(pattern) + 1))[:size]


@pytest.fixture
async def linkedin(sandbox: Sandbox) -> AsyncIterator[LinkedIn]:
    """A client of the sandbox."""
    platform = LinkedIn(sandbox.settings(organizations=True))
    yield platform
    await platform.close()


def post_of(text: str = "", **content: Any) -> Post:
    now = datetime.now(UTC)
    return Post(
        id="post_1",
        tenant="default",
        account_id="acc_1",
        state=PostState.READY,
        version=1,
        content=Content(text, **content),
        scheduled_at=now,
        zone="UTC",
        created_at=now,
        updated_at=now,
    )
