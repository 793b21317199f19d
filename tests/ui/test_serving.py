"""The service sends the files of the UI cached, compressed and with a strict content policy."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2 as httpx
import pytest
from fastapi import FastAPI

from duetime.api.ui import Files, router

PAGE = '<!doctype html><html><head><base href="./" /><meta name="style-nonce" content="" /></head></html>'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    built = tmp_path / "built"
    (built / "assets").mkdir(parents=True)
    (built / "index.html").write_text(PAGE)
    (built / "assets" / "index-abc.js").write_text("let one = 1;")
    (built / ".stamp").write_text("secret")
    (tmp_path / "outside.js").write_text("outside")
    return built


@pytest.fixture
async def client(folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(folder) as opened:
        yield opened


def client_of(folder: Path) -> httpx.AsyncClient:
    service = FastAPI()
    service.include_router(router(Files(folder)))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=service), base_url="http://localhost")


@pytest.mark.parametrize(
    ("path", "base"),
    [
        ("/ui/", "./"),
        ("/ui/schedules", "./"),
        ("/ui/schedules/new", "../"),
        ("/ui/schedules/a%2Fb", "../"),
        ("/ui/a/b/c", "../../"),
    ],
)
async def test_every_path_returns_the_page_with_its_relative_base(
    client: httpx.AsyncClient, path: str, base: str
) -> None:
    response = await client.get(path)
    assert response.status_code == 200
    assert f'<base href="{base}" />' in response.text


async def test_content_policy_allows_only_own_scripts_and_nonce_styles(client: httpx.AsyncClient) -> None:
    first, second = [await client.get("/ui/") for _ in range(2)]
    policy = first.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    nonce = re.search("style-src 'self' 'nonce-([^']+)'", policy)
    assert nonce is not None
    assert f'content="{nonce[1]}"' in first.text
    assert nonce[1] not in second.text, "each response has its own nonce"


async def test_assets_are_immutable_and_compressed(client: httpx.AsyncClient) -> None:
    response = await client.get("/ui/assets/index-abc.js", headers={"accept-encoding": "gzip"})
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert response.headers["content-encoding"] == "gzip"
    assert response.headers["content-type"].startswith("text/javascript")
    assert response.text == "let one = 1;"
    plain = await client.get("/ui/assets/index-abc.js", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    same = await client.get("/ui/assets/index-abc.js", headers={"if-none-match": plain.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")


@pytest.mark.parametrize(
    "path", ["/ui/assets/gone-123.js", "/ui/assets/..%2F..%2Foutside.js", "/ui/assets/../../outside.js"]
)
async def test_path_outside_the_assets_is_not_served(client: httpx.AsyncClient, path: str) -> None:
    response = await client.get(path)
    assert "outside" not in response.text.replace("/outside", "")
    assert response.status_code in {200, 404}


async def test_hidden_file_is_not_served(client: httpx.AsyncClient) -> None:
    assert "secret" not in (await client.get("/ui/.stamp")).text


@pytest.mark.parametrize("path", ["/", "/ui"])
async def test_root_redirects_to_the_ui_below_any_path(client: httpx.AsyncClient, path: str) -> None:
    response = await client.get(path)
    assert (response.status_code, response.headers["location"]) == (307, "ui/")


async def test_missing_ui_build_is_reported(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        response = await client.get("/ui/")
    assert response.status_code == 503
    assert "make ui" in response.text
