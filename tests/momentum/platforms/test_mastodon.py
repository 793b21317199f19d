"""The second platform, on a local Mastodon server."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qsl, urlsplit

import pytest

from momentum.errors import ConfigError
from momentum.model import Content, MediaKind, MediaUse
from momentum.platform import (
    Access,
    Attachment,
    NotSent,
    OutcomeUnknown,
    PlatformError,
    ReconnectNeeded,
    Rejected,
    Throttled,
    TryLater,
    Upload,
)
from momentum.platforms import platforms_of
from momentum.platforms.linkedin import LinkedInSettings
from momentum.platforms.mastodon import Mastodon, MastodonSettings
from momentum.posts.checks import check
from momentum.posts.content import PostInput
from tests.momentum.platforms.fixtures import PNG, CountingMeter, SavedUploads, media_file, post_of
from tests.momentum.platforms.mastodon_server import (
    MastodonServer,
    answer,
    lost_answer,
    rate_limit,
    raw,
    running_mastodon,
    says,
)
from tests.momentum.samples import sample_account
from tests.servers.process import free_port

REDIRECT = "http://127.0.0.1:8081/oauth/callback"
VERIFIER = "v" * 43
STATUSES = "/api/v1/statuses"


@pytest.fixture
async def server() -> AsyncIterator[MastodonServer]:
    async with running_mastodon() as server:
        yield server


@pytest.fixture
def nowhere() -> str:
    """A server that does not run."""
    return f"127.0.0.1:{free_port()}"


@pytest.fixture
def settings(tmp_path: Path, server: MastodonServer, nowhere: str) -> MastodonSettings:
    servers = (urlsplit(server.url).netloc, nowhere)
    return MastodonSettings(tmp_path / "apps.json", servers, plain_http=True)


@pytest.fixture
async def mastodon(settings: MastodonSettings) -> AsyncIterator[Mastodon]:
    platform = Mastodon(settings)
    yield platform
    await platform.close()


async def code_of(mastodon: Mastodon, server: MastodonServer) -> str:
    url = await mastodon.authorize_url("a state", VERIFIER, REDIRECT, server.url)
    back = dict(parse_qsl(urlsplit(server.consent(dict(parse_qsl(urlsplit(url).query)))).query))
    assert back["state"] == "a state"
    return back["code"]


@pytest.fixture
async def access(mastodon: Mastodon, server: MastodonServer) -> Access:
    grant = await mastodon.exchange(await code_of(mastodon, server), VERIFIER, REDIRECT, server.url)
    [author] = await mastodon.authors(grant, server.url)
    return Access(author, grant.access_token, grant.scopes, server.url)


async def test_member_connects_and_publishes(
    mastodon: Mastodon, server: MastodonServer, access: Access
) -> None:
    assert (access.author.name, access.author.urn) == ("Ada", "42")
    assert access.author.handle == f"@ada@{urlsplit(server.url).netloc}"
    meter = CountingMeter()
    post = replace(post_of("Hello #world <3"), content=Content("Hello #world <3", visibility="UNLISTED"))
    published = await mastodon.publish(access, post, [], meter)
    [status] = server.statuses
    assert (published.id, published.url) == (status["id"], status["url"])
    assert (status["status"], status["visibility"]) == ("Hello #world <3", "unlisted")
    assert meter.requests == 1


async def test_registration_is_shared_by_processes_and_not_readable_by_others(
    mastodon: Mastodon, server: MastodonServer, settings: MastodonSettings, tmp_path: Path
) -> None:
    code = await code_of(mastodon, server)
    other_process = Mastodon(settings)
    await other_process.exchange(code, VERIFIER, REDIRECT, server.url)
    await other_process.close()
    assert len(server.apps) == 1
    assert (tmp_path / "apps.json").stat().st_mode & 0o777 == 0o600


async def test_pkce_and_scopes_are_checked(mastodon: Mastodon, server: MastodonServer) -> None:
    with pytest.raises(ReconnectNeeded):
        await mastodon.exchange(await code_of(mastodon, server), "w" * 43, REDIRECT, server.url)
    server.scopes = "read write:media"
    with pytest.raises(ReconnectNeeded, match="write:statuses") as caught:
        await mastodon.exchange(await code_of(mastodon, server), VERIFIER, REDIRECT, server.url)
    assert "read:accounts" not in str(caught.value)


async def test_disconnected_token_is_revoked(
    mastodon: Mastodon, server: MastodonServer, access: Access
) -> None:
    await mastodon.revoke(access)
    assert server.tokens == {}
    with pytest.raises(ReconnectNeeded):
        await mastodon.publish(access, post_of("x"), [], CountingMeter())
    with pytest.raises(Rejected):
        await mastodon.revoke(access)


async def test_repeated_create_call_makes_one_post(
    mastodon: Mastodon, server: MastodonServer, access: Access
) -> None:
    server.faults[STATUSES] = [lost_answer]
    post = post_of("Only once")
    with pytest.raises(TryLater):
        await mastodon.publish(access, post, [], CountingMeter())
    published = await mastodon.publish(access, post, [], CountingMeter())
    assert [status["id"] for status in server.statuses] == [published.id]


async def test_edited_post_is_another_post(
    mastodon: Mastodon, server: MastodonServer, access: Access
) -> None:
    post = post_of("First words")
    await mastodon.publish(access, post, [], CountingMeter())
    await mastodon.publish(access, replace(post, content=Content("Other words")), [], CountingMeter())
    assert [status["status"] for status in server.statuses] == ["First words", "Other words"]


@pytest.mark.parametrize("slow", [False, True])
async def test_picture_is_uploaded_processed_and_described(
    mastodon: Mastodon, server: MastodonServer, access: Access, slow: bool
) -> None:
    server.slow_processing = slow
    file, upload, saved = media_file(MediaKind.IMAGE, PNG + b"x" * 200_000), Upload(), SavedUploads()
    await mastodon.upload(access, file, upload, saved, CountingMeter())
    assert saved.saved == [upload]
    assert upload.sent
    assert await mastodon.is_processed(access, file.media, upload, CountingMeter()) is not slow
    attachment = Attachment(file.media, str(upload.asset), alt_text="A picture")
    post = post_of("Look", media=(MediaUse(file.media.id),))
    if slow:
        with pytest.raises(TryLater) as caught:
            await mastodon.publish(access, post, [attachment], CountingMeter())
        assert caught.value.code == "media_processing"
        server.slow_processing = False
        assert await mastodon.is_processed(access, file.media, upload, CountingMeter())
    await mastodon.publish(access, post, [attachment], CountingMeter())
    [media] = server.media.values()
    assert media["content"] == PNG + b"x" * 200_000
    assert media["description"] == "A picture"
    assert server.statuses[0]["media_ids"] == [upload.asset]


@pytest.mark.parametrize(
    ("status", "text", "expected"),
    [
        (401, "The access token was revoked", ReconnectNeeded),
        (403, "Your login is currently disabled", ReconnectNeeded),
        (403, "This action is not allowed", Rejected),
        (404, "Record not found", Rejected),
        (422, "Validation failed: Text can't be blank", Rejected),
        (429, "Too many requests", Throttled),
        (500, "Internal error", TryLater),
        (503, "Remote data could not be fetched", TryLater),
    ],
)
async def test_errors(
    mastodon: Mastodon,
    server: MastodonServer,
    access: Access,
    status: int,
    text: str,
    expected: type[PlatformError],
) -> None:
    server.faults[STATUSES] = [answer(status, text)]
    with pytest.raises(PlatformError, match=text) as caught:
        await mastodon.publish(access, post_of("x"), [], CountingMeter())
    assert (type(caught.value), caught.value.status) == (expected, status)
    assert server.statuses == []


async def test_rate_limit_holds_the_account_until_the_servers_time(
    mastodon: Mastodon, server: MastodonServer, access: Access
) -> None:
    server.faults[STATUSES] = [rate_limit(120)]
    with pytest.raises(Throttled) as caught:
        await mastodon.publish(access, post_of("x"), [], CountingMeter())
    assert not caught.value.whole_platform
    assert abs(caught.value.until - datetime.now(UTC) - timedelta(seconds=120)) < timedelta(seconds=10)


async def test_unreachable_server_proves_that_nothing_was_sent(
    mastodon: Mastodon, access: Access, nowhere: str
) -> None:
    elsewhere = replace(access, server=f"http://{nowhere}")
    with pytest.raises(NotSent):
        await mastodon.publish(elsewhere, post_of("x"), [], CountingMeter())


async def test_post_is_found_by_its_text(mastodon: Mastodon, server: MastodonServer, access: Access) -> None:
    started = datetime.now(UTC)
    texts = ["Hello  <b>\n#x", *(f"Other {number}" for number in range(45))]
    for number, text in enumerate(texts):
        await mastodon.publish(access, replace(post_of(text), id=f"post_{number}"), [], CountingMeter())
    found = await mastodon.find(access, post_of("Hello <b> #x"), started, CountingMeter())
    assert found is not None
    assert found.id == server.statuses[0]["id"]
    assert await mastodon.find(access, post_of("Never sent"), started, CountingMeter()) is None
    later = datetime.now(UTC) + timedelta(minutes=5)
    assert await mastodon.find(access, post_of("Hello <b> #x"), later, CountingMeter()) is None
    with pytest.raises(OutcomeUnknown):
        await mastodon.find(access, post_of(""), started, CountingMeter())


@pytest.mark.parametrize(
    "server",
    [
        *("", "ftp://x.org", "https://x.org/path", "https://user@x.org", "http://x.org", "other.org"),
        *("https://[", "x.org:99999999", "x.org?a=b", "x.org#a", "x\0.org", "https://x.org@other.org"),
    ],
)
async def test_server_must_be_an_allowed_https_host(tmp_path: Path, server: str) -> None:
    mastodon = Mastodon(MastodonSettings(tmp_path / "apps.json", servers=("x.org",)))
    with pytest.raises(Rejected, match="server"):
        await mastodon.authorize_url("state", VERIFIER, REDIRECT, server)


def test_list_of_servers_is_checked() -> None:
    for wrong in ("https://x.org", "x.org/path", "", "@x.org"):
        with pytest.raises(ConfigError, match="MOMENTUM_MASTODON_SERVERS"):
            MastodonSettings(servers=(wrong,))


async def test_inner_service_is_not_reached(server: MastodonServer, tmp_path: Path) -> None:
    """It gets no request, and an open port looks like a closed one."""
    mastodon = Mastodon(MastodonSettings(tmp_path / "apps.json", plain_http=True))
    texts = set()
    for port in (urlsplit(server.url).port, free_port()):
        for host in ("127.0.0.1", "localhost", "10.0.0.1"):
            with pytest.raises(Rejected) as caught:
                await mastodon.authorize_url("state", VERIFIER, REDIRECT, f"http://{host}:{port}")
            texts.add(str(caught.value).replace(f"{host}:{port}", "HOST"))
    assert texts == {"server: http://HOST may not be called"}
    assert server.apps == {}
    await mastodon.close()


async def test_words_of_a_server_are_for_those_who_have_an_account_there(
    mastodon: Mastodon, server: MastodonServer, access: Access
) -> None:
    for path in ("/api/v1/apps", "/oauth/token"):
        server.faults[path] = [answer(status, "root secret") for status in (500, 403, 400)]
    for _ in range(3):
        with pytest.raises(PlatformError, match=r"status \d+") as caught:
            await mastodon.authorize_url("state", VERIFIER, f"{REDIRECT}/other", server.url)
        assert "secret" not in str(caught.value)
        with pytest.raises(PlatformError, match=r"status \d+") as caught:
            await mastodon.exchange("code", VERIFIER, REDIRECT, server.url)
        assert "secret" not in str(caught.value)
    server.faults[STATUSES] = [answer(422, "no\0 \u2028\n\x1b[31m " + "x" * 9_000)]
    with pytest.raises(Rejected, match=r"no \[31m x+$") as caught:
        await mastodon.publish(access, post_of("x"), [], CountingMeter())
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("coding", ["gzip", "identity", "br"])
async def test_answer_of_any_size_costs_a_bounded_amount(
    mastodon: Mastodon, server: MastodonServer, access: Access, coding: str
) -> None:
    body = gzip.compress(b" " * 60_000_000) if coding == "gzip" else b" " * 2_000_000
    server.faults[STATUSES] = [raw(body, coding)]
    tracemalloc.start()
    try:
        with pytest.raises(TryLater, match=r"1,048,576 bytes|compression"):
            await mastodon.publish(access, post_of("x"), [], CountingMeter())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 12_000_000


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "https://x.org/\n", "https://x.org/" + "x" * 3_000, 7]
)
async def test_address_of_a_post_is_one_that_a_page_may_link_to(
    mastodon: Mastodon, server: MastodonServer, access: Access, url: object
) -> None:
    server.faults[STATUSES] = [says({"id": "1", "url": url})]
    assert (await mastodon.publish(access, post_of("x"), [], CountingMeter())).url is None


@pytest.mark.parametrize("body", [{}, {"id": "../../oauth"}, {"id": ["1"]}, {"id": "x" * 300}, [], "1", None])
async def test_accepted_post_without_a_usable_id_is_in_doubt(
    mastodon: Mastodon, server: MastodonServer, access: Access, body: object
) -> None:
    server.faults[STATUSES] = [says(body)]
    with pytest.raises(OutcomeUnknown):
        await mastodon.publish(access, post_of("x"), [], CountingMeter())


async def test_name_of_a_member_is_cleaned_and_cut(mastodon: Mastodon, server: MastodonServer) -> None:
    grant = await mastodon.exchange(await code_of(mastodon, server), VERIFIER, REDIRECT, server.url)
    path = "/api/v1/accounts/verify_credentials"
    me: dict[str, object] = {"id": 42, "username": "ada", "avatar": "javascript:1"}
    family = "\U0001f469\u200d\U0001f467"  # one picture of two people, joined by an invisible character
    for given, shown in (
        (f" Ada\0\u2028{family}\nL. ", f"Ada{family} L."),
        ("x" * 500_000, "x" * 255),
        (["Ada"], "ada"),
        ("\0", "ada"),
    ):
        server.faults[path] = [says({**me, "display_name": given})]
        [author] = await mastodon.authors(grant, server.url)
        assert (author.urn, author.name, author.picture) == ("42", shown, None)
    for wrong in ({"username": "a/b"}, {"username": 7.5}, {"id": True}, {"id": "4\0"}):
        server.faults[path] = [says({**me, **wrong})]
        with pytest.raises(TryLater, match="cannot be used"):
            await mastodon.authors(grant, server.url)


@pytest.mark.parametrize("token", ["a\r\nx: y", "", None, 7.5, "x" * 9_000])
async def test_unusable_token_is_not_stored(
    mastodon: Mastodon, server: MastodonServer, token: object
) -> None:
    code = await code_of(mastodon, server)
    server.faults["/oauth/token"] = [says({"access_token": token, "scope": 7})]
    with pytest.raises(TryLater, match="its access_token is missing or invalid"):
        await mastodon.exchange(code, VERIFIER, REDIRECT, server.url)


def test_post_is_checked() -> None:
    mastodon = Mastodon(MastodonSettings())
    assert [problem.code for problem in mastodon.check(post_of(" "), [])] == ["text_missing"]
    media = [media_file(kind, b"x").media for kind in (MediaKind.IMAGE, MediaKind.VIDEO)]
    post = post_of("x", media=(MediaUse("a"), MediaUse("b")))
    assert [problem.code for problem in mastodon.check(post, media)] == ["media_mixed"]
    assert mastodon.check(post_of("x"), []) == []


@pytest.mark.parametrize(("enabled", "names"), [(False, ["linkedin"]), (True, ["linkedin", "mastodon"])])
def test_settings_choose_the_platforms(enabled: bool, names: list[str]) -> None:
    settings = SimpleNamespace(linkedin=LinkedInSettings(), mastodon=enabled, mastodon_servers=())
    assert list(platforms_of(settings)) == names


async def test_text_limit_is_that_of_the_server(mastodon: Mastodon, server: MastodonServer) -> None:
    server.max_characters = 1_200
    account = sample_account(platform="mastodon", server=server.url)
    given = PostInput(account.id, "x" * 1_000)

    def problems() -> list[str]:
        return [one.code for one in check(given, account, mastodon, [], datetime.now(UTC)).problems]

    assert problems() == ["text_too_long"]  # nothing is known yet
    await mastodon.learn_rules(server.url)
    assert problems() == []
    assert mastodon.rules_at(server.url).max_text == 1_200
    assert mastodon.rules_at("https://other.example").max_text == 500
    await mastodon.learn_rules(server.url)
    assert server.instance_requests == 1


@pytest.mark.parametrize("limit", [None, "many", 0, -5])
async def test_unusable_limit_of_a_server_leaves_the_default(
    mastodon: Mastodon, server: MastodonServer, limit: object
) -> None:
    server.max_characters = limit
    await mastodon.learn_rules(server.url)
    assert mastodon.rules_at(server.url).max_text == 500


async def test_server_that_says_nothing_is_not_asked_again_at_once(
    mastodon: Mastodon, server: MastodonServer, nowhere: str
) -> None:
    server.faults["/api/v2/instance"] = [answer(404)]
    await mastodon.learn_rules(server.url)
    await mastodon.learn_rules(server.url)
    assert (mastodon.rules_at(server.url).max_text, server.instance_requests) == (500, 0)
    await mastodon.learn_rules(f"http://{nowhere}")
    assert mastodon.rules_at(f"http://{nowhere}").max_text == 500
