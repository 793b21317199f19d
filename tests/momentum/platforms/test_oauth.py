"""Connecting an account, through the sandbox's consent page as a browser does it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from urllib.parse import parse_qs, urlsplit

import pytest

from momentum.errors import ConfigError
from momentum.model import AuthorKind
from momentum.platform import Access, PlatformStopped, ReconnectNeeded, Rejected, TryLater
from momentum.platforms.linkedin import LinkedIn
from tests.momentum.platforms.fixtures import CountingMeter, Sandbox, post_of

REDIRECT = "http://127.0.0.1:8081/oauth/callback"
VERIFIER = "v" * 43


class Form(HTMLParser):
    """The first form of a page, as it would be submitted."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.action = ""
        self.fields: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.action = attributes["action"]
        if tag != "input" or (attributes["type"] in ("radio", "checkbox") and "checked" not in attributes):
            return
        self.fields.append((attributes["name"], attributes["value"]))


async def consent(
    sandbox: Sandbox, url: str, decision: str = "allow", without: str = ""
) -> dict[str, list[str]]:
    """What the browser brings back."""
    async with sandbox.http.get(url) as response:
        assert response.status == 200
        form = Form(await response.text())
    fields = [(name, value) for name, value in form.fields if value != without]
    async with sandbox.http.post(
        f"{sandbox.url}{form.action}", data=[*fields, ("decision", decision)], allow_redirects=False
    ) as response:
        assert response.status == 303
        location = response.headers["Location"]
    assert location.startswith(REDIRECT)
    return parse_qs(urlsplit(location).query)


async def connected(
    sandbox: Sandbox, linkedin: LinkedIn, without: str = ""
) -> tuple[str, dict[str, list[str]]]:
    url = await linkedin.authorize_url("a state", VERIFIER, REDIRECT)
    answer = await consent(sandbox, url, without=without)
    return answer["code"][0], answer


@pytest.mark.parametrize("pkce", [False, True])
async def test_member_connects_and_publishes(sandbox: Sandbox, pkce: bool) -> None:
    linkedin = LinkedIn(sandbox.settings(pkce=pkce))
    code, answer = await connected(sandbox, linkedin)
    assert answer["state"] == ["a state"]
    grant = await linkedin.exchange(code, VERIFIER, REDIRECT)
    assert set(grant.scopes) == {"openid", "profile", "w_member_social"}
    assert grant.expires_at is not None
    assert abs(grant.expires_at - datetime.now(UTC) - timedelta(days=60)) < timedelta(minutes=1)
    assert grant.refresh_token is None
    [author] = await linkedin.authors(grant)
    assert (author.name, author.kind) == ("Maya Lindqvist", AuthorKind.MEMBER)
    assert author.urn == "urn:li:person:mYa_7-kQ2x"
    assert author.picture is not None
    async with sandbox.http.get(author.picture) as picture:
        assert picture.content_type == "image/svg+xml"
    access = Access(author, grant.access_token, grant.scopes)
    await linkedin.publish(access, post_of("Connected"), [], CountingMeter())
    assert (await sandbox.posts())[0]["author"] == author.urn
    await linkedin.close()


async def test_organizations_are_authors(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    code, _ = await connected(sandbox, linkedin)
    authors = await linkedin.authors(await linkedin.exchange(code, VERIFIER, REDIRECT))
    assert [(author.name, author.kind) for author in authors] == [
        ("Maya Lindqvist", AuthorKind.MEMBER),
        ("Northwind Coffee", AuthorKind.ORGANIZATION),
    ]
    assert authors[1].urn == "urn:li:organization:5001"


async def test_organization_whose_name_is_not_readable_is_still_an_author(
    sandbox: Sandbox, linkedin: LinkedIn
) -> None:
    code, _ = await connected(sandbox, linkedin)
    grant = await linkedin.exchange(code, VERIFIER, REDIRECT)
    await sandbox.faults("forbidden", "organizations.get")
    assert (await linkedin.authors(grant))[1].name == "urn:li:organization:5001"


async def test_pkce_is_checked(sandbox: Sandbox) -> None:
    linkedin = LinkedIn(sandbox.settings(pkce=True))
    code, _ = await connected(sandbox, linkedin)
    with pytest.raises(ReconnectNeeded):
        await linkedin.exchange(code, "w" * 43, REDIRECT)
    await linkedin.close()


async def test_missing_scope_is_named(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    code, _ = await connected(sandbox, linkedin, without="w_member_social")
    with pytest.raises(ReconnectNeeded, match="w_member_social") as caught:
        await linkedin.exchange(code, VERIFIER, REDIRECT)
    assert caught.value.code == "scope_missing"


async def test_code_works_once(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    code, _ = await connected(sandbox, linkedin)
    await linkedin.exchange(code, VERIFIER, REDIRECT)
    with pytest.raises(ReconnectNeeded):
        await linkedin.exchange(code, VERIFIER, REDIRECT)


async def test_old_code_is_refused(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    await sandbox.change(code_seconds=-1)
    code, _ = await connected(sandbox, linkedin)
    with pytest.raises(ReconnectNeeded):
        await linkedin.exchange(code, VERIFIER, REDIRECT)


async def test_cancelled_consent_comes_back_as_an_error(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    url = await linkedin.authorize_url("a state", VERIFIER, REDIRECT)
    answer = await consent(sandbox, url, decision="cancel")
    assert answer["error"] == ["user_cancelled_authorize"]
    assert "code" not in answer


async def test_missing_client_id_is_named(sandbox: Sandbox) -> None:
    linkedin = LinkedIn(sandbox.settings(client_id=""))
    with pytest.raises(ConfigError, match="client_id"):
        await linkedin.authorize_url("a state", VERIFIER, REDIRECT)


async def test_wrong_secret_stops_the_platform(sandbox: Sandbox) -> None:
    linkedin = LinkedIn(sandbox.settings(client_secret="wrong"))
    code, _ = await connected(sandbox, linkedin)
    with pytest.raises(PlatformStopped, match="client id and secret"):
        await linkedin.exchange(code, VERIFIER, REDIRECT)
    await linkedin.close()


async def test_unavailable_token_service_is_tried_later(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    await sandbox.faults("error_before", "oauth.token", status=503)
    with pytest.raises(TryLater):
        await linkedin.exchange("code", VERIFIER, REDIRECT)


async def test_refresh_does_not_extend_the_end_of_the_refresh_token(
    sandbox: Sandbox, linkedin: LinkedIn
) -> None:
    await sandbox.change(refresh_tokens=True, refresh_seconds=5 * 86_400)
    code, _ = await connected(sandbox, linkedin)
    first = await linkedin.exchange(code, VERIFIER, REDIRECT)
    assert first.refresh_token is not None
    second = await linkedin.refresh(first.refresh_token)
    assert second.access_token != first.access_token
    assert second.refresh_expires_at is not None
    assert second.expires_at is not None
    assert second.refresh_expires_at - datetime.now(UTC) < timedelta(days=5, seconds=1)
    assert second.expires_at - datetime.now(UTC) < timedelta(days=5, seconds=1)
    assert (await linkedin.authors(second))[0].name == "Maya Lindqvist"


@pytest.mark.parametrize("seconds", [-1, 3600])
async def test_refused_refresh_asks_for_a_reconnection(
    sandbox: Sandbox, linkedin: LinkedIn, seconds: int
) -> None:
    await sandbox.change(refresh_tokens=True, refresh_seconds=seconds)
    code, _ = await connected(sandbox, linkedin)
    grant = await linkedin.exchange(code, VERIFIER, REDIRECT)
    token = str(grant.refresh_token) if seconds < 0 else "unknown"
    with pytest.raises(ReconnectNeeded) as caught:
        await linkedin.refresh(token)
    assert caught.value.code == "invalid_grant"


async def test_revoked_and_expired_tokens_are_told_apart(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access = await sandbox.access()
    await linkedin.revoke(access)
    with pytest.raises(ReconnectNeeded) as caught:
        await linkedin.publish(access, post_of("x"), [], CountingMeter())
    assert caught.value.code == "token_revoked"
    await sandbox.change(token_seconds=-1)
    with pytest.raises(ReconnectNeeded) as caught:
        await linkedin.publish(await sandbox.access(), post_of("x"), [], CountingMeter())
    assert caught.value.code == "token_expired"


async def test_token_without_a_scope_is_refused(sandbox: Sandbox, linkedin: LinkedIn) -> None:
    access = await sandbox.access(scopes="openid profile")
    with pytest.raises(Rejected) as caught:
        await linkedin.publish(access, post_of("x"), [], CountingMeter())
    assert (caught.value.code, caught.value.status) == ("access_denied", 403)
