"""How the files of the UI leave the house: cached, compressed, under a strict policy, below any path."""

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
    async with client_of(folder) as made:
        yield made


def client_of(folder: Path) -> httpx.AsyncClient:
    service = FastAPI()
    service.include_router(router(Files(folder)))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=service), base_url="http://localhost")


@pytest.mark.parametrize(
    ("path", "base"),
    [("/ui/", "./"), ("/ui/schedules", "./"), ("/ui/schedules/new", "../"), ("/ui/schedules/a%2Fb", "../"), ("/ui/a/b/c", "../../")],
)
async def test_every_address_is_the_page_with_its_base_as_seen_from_there(client: httpx.AsyncClient, path: str, base: str) -> None:
    answer = await client.get(path)
    assert answer.status_code == 200
    assert f'<base href="{base}" />' in answer.text


async def test_the_policy_allows_own_scripts_and_marked_styles_only(client: httpx.AsyncClient) -> None:
    first, second = [await client.get("/ui/") for _ in range(2)]
    policy = first.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    nonce = re.search("style-src 'self' 'nonce-([^']+)'", policy)
    assert nonce is not None
    assert f'content="{nonce[1]}"' in first.text
    assert nonce[1] not in second.text, "each page has a mark of its own"


async def test_assets_are_kept_for_ever_and_travel_compressed(client: httpx.AsyncClient) -> None:
    answer = await client.get("/ui/assets/index-abc.js", headers={"accept-encoding": "gzip"})
    assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.text == "let one = 1;"
    plain = await client.get("/ui/assets/index-abc.js", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    same = await client.get("/ui/assets/index-abc.js", headers={"if-none-match": plain.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")


@pytest.mark.parametrize("path", ["/ui/assets/gone-123.js", "/ui/assets/..%2F..%2Foutside.js", "/ui/assets/../../outside.js"])
async def test_what_is_no_asset_is_not_there(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert "outside" not in answer.text.replace("/outside", "")
    assert answer.status_code in {200, 404}


async def test_hidden_files_are_no_part_of_it(client: httpx.AsyncClient) -> None:
    assert "secret" not in (await client.get("/ui/.stamp")).text


@pytest.mark.parametrize("path", ["/", "/ui"])
async def test_the_front_door_leads_to_the_ui_below_any_path(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert (answer.status_code, answer.headers["location"]) == (307, "ui/")


async def test_an_installation_without_the_ui_says_so(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        answer = await client.get("/ui/")
    assert answer.status_code == 503
    assert "make ui" in answer.text
