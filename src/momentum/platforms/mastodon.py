"""Mastodon, as a platform: many servers, one client.

The create call has an `Idempotency-Key`: for an hour the server answers a repeated call with the first post.
A lost answer therefore leaves no doubt, and the call is simply tried again.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import unicodedata
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from aiohttp import FormData

from duetime.egress import CallFailed, GuardedClient
from momentum import __version__
from momentum.errors import ConfigError, Problem
from momentum.model import Author, Media, MediaKind, Post
from momentum.platform import (
    Access,
    Attachment,
    Grant,
    MediaFile,
    MediaRule,
    Meter,
    NotSent,
    OutcomeUnknown,
    PlatformError,
    Published,
    ReconnectNeeded,
    Rejected,
    Rules,
    SaveUpload,
    TryLater,
    Upload,
)
from momentum.platforms import mastodon_answers as answers
from momentum.platforms.mastodon_answers import ID, SECRET, AnswerUnusable, Reply, checked

SCOPES = ("read:accounts", "read:statuses", "write:media", "write:statuses")
USER_AGENT = {"User-Agent": f"Momentum/{__version__}"}
CLOCK_SKEW = timedelta(seconds=60)  # between the server and this machine
PAGE = 40
ANY_TEXT = re.compile(r".*", re.DOTALL)
RULES_LIFETIME = timedelta(hours=12)  # of what a server said about its limits
RULES_RETRY = timedelta(minutes=5)  # after a server said nothing
RULES_TIMEOUT = 5.0  # seconds; a person waits
MB = 1024 * 1024
SERVER = re.compile(r"(?:(https?)://)?([a-z0-9_.-]{1,200}(?::[0-9]{1,5})?)/?")
RULES = Rules(
    max_text=500,
    media={
        MediaKind.IMAGE: MediaRule(
            types=("image/jpeg", "image/png", "image/gif", "image/webp"),
            max_bytes=16 * MB,
            max_count=4,
            max_pixels=33_177_600,
        ),
        MediaKind.VIDEO: MediaRule(types=("video/mp4",), max_bytes=99 * MB),
    },
    visibilities=("PUBLIC", "UNLISTED", "PRIVATE"),
)


@dataclass(frozen=True, slots=True)
class MastodonSettings:
    apps_file: Path = Path("momentum-mastodon.json")  # registrations at servers, with their secrets
    # The only ones that people may connect to, also inside of the network; empty: all on the Internet.
    servers: tuple[str, ...] = ()
    plain_http: bool = False  # for tests

    def __post_init__(self) -> None:
        for each in self.servers:
            found = SERVER.fullmatch(each)
            if found is None or found[1]:
                raise ConfigError(
                    f"MOMENTUM_MASTODON_SERVERS: {each!r} is not a server: write mastodon.social"
                )


@dataclass(frozen=True, slots=True)
class Registration:
    """Momentum as an app of one server."""

    server: str
    redirect_uri: str
    client_id: str
    client_secret: str


@dataclass(frozen=True, slots=True)
class _KnownRules:
    rules: Rules
    until: datetime


class Mastodon:
    name = "mastodon"
    title = "Mastodon"
    rules = RULES
    can_find = True

    def __init__(self, settings: MastodonSettings) -> None:
        self._settings = settings
        hosts = [server.partition(":")[0] for server in settings.servers]
        self._client = GuardedClient(hosts, plain_http=settings.plain_http, headers=USER_AGENT)
        self._known: dict[str, _KnownRules] = {}

    def notices(self, now: datetime) -> Sequence[str]:
        return []

    async def learn_rules(self, server: str) -> None:
        """Each server has its own limit of characters."""
        known = self._known.get(server)
        if known is not None and known.until > datetime.now(UTC):
            return
        rules, lifetime = known.rules if known else self.rules, RULES_RETRY
        try:
            async with asyncio.timeout(RULES_TIMEOUT):
                answer = checked(await self._exchange("GET", self._base(server), "/api/v2/instance"))
            limit = answer.body["configuration"]["statuses"]["max_characters"]
            if isinstance(limit, int) and limit > 0:
                rules, lifetime = replace(self.rules, max_text=limit), RULES_LIFETIME
        except (PlatformError, TimeoutError, KeyError, TypeError):
            pass  # an old server, or one that does not answer
        self._known[server] = _KnownRules(rules, datetime.now(UTC) + lifetime)

    def rules_at(self, server: str) -> Rules:
        known = self._known.get(server)
        return known.rules if known else self.rules

    async def authorize_url(self, state: str, verifier: str, redirect_uri: str, server: str = "") -> str:
        base = self._base(server)
        app = await self._registered(base, redirect_uri)
        challenge = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        fields = {
            "response_type": "code",
            "client_id": app.client_id,
            "redirect_uri": redirect_uri,
            "scope": " ".join(SCOPES),
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        return f"{base}/oauth/authorize?{urlencode(fields, quote_via=quote)}"

    async def exchange(self, code: str, verifier: str, redirect_uri: str, server: str = "") -> Grant:
        base = self._base(server)
        app = await self._registered(base, redirect_uri)
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "client_id": app.client_id,
            "client_secret": app.client_secret,
            "code_verifier": verifier,
        }
        reply = await self._exchange("POST", base, "/oauth/token", data=fields)
        if reply.status in (400, 401):
            raise ReconnectNeeded(
                f"{base} gave no access (status {reply.status}). Connect it again.", code="refused"
            )
        token = checked(reply).field("access_token", SECRET)
        named = reply.body.get("scope")
        granted = tuple(named.split()) if isinstance(named, str) else SCOPES
        missing = [scope for scope in SCOPES if not {scope, scope.split(":")[0]} & set(granted)]
        if missing:
            text = (
                f"{base} did not grant {', '.join(missing)}. Connect the account again and allow everything."
            )
            raise ReconnectNeeded(text, code="scope_missing")
        return Grant(token, expires_at=None, scopes=granted)

    async def authors(self, grant: Grant, server: str = "") -> Sequence[Author]:
        base = self._base(server)
        path = "/api/v1/accounts/verify_credentials"
        account = await self._call("GET", base, path, grant.access_token)
        user = account.field("username", answers.USER)
        name = answers.shown_text(account.body.get("display_name"), answers.MAX_NAME) or user
        handle = f"@{user}@{urlsplit(base).netloc}"[: answers.MAX_NAME]
        picture = self._link(account.body, "avatar")
        return [Author(account.field("id", ID), name, picture=picture, handle=handle)]

    async def refresh(self, refresh_token: str, server: str = "") -> Grant:
        raise ReconnectNeeded(
            "Mastodon's tokens are not refreshed: connect the account again", code="no_refresh"
        )

    async def revoke(self, access: Access) -> None:
        """Only the registration that a token was made for can revoke it."""
        base = self._base(access.server)
        for app in self._registrations():
            if app.server == base:
                fields = {
                    "client_id": app.client_id,
                    "client_secret": app.client_secret,
                    "token": access.token,
                }
                reply = await self._exchange("POST", base, "/oauth/revoke", data=fields)
                if reply.status == 200:
                    return
        raise Rejected(f"{base} did not revoke the token: remove Momentum there yourself", code="not_revoked")

    def check(self, post: Post, media: Sequence[Media]) -> Sequence[Problem]:
        if not post.content.text.strip() and not post.content.media:
            return [Problem("text", "write a text, or add a file", "text_missing")]
        if len({each.kind for each in media}) > 1:
            return [Problem("media", "Mastodon does not mix images and videos in one post", "media_mixed")]
        return []

    async def upload(
        self, access: Access, file: MediaFile, upload: Upload, save: SaveUpload, meter: Meter
    ) -> None:
        """The server gives the id after the last byte. A file whose answer was lost stays unused, and the
        server deletes it."""
        if upload.sent:
            return
        await meter.spend()
        form = FormData()
        form.add_field("file", file.stream(), filename=file.media.name, content_type=file.media.type)
        reply = await self._call("POST", self._base(access.server), "/api/v2/media", access.token, data=form)
        upload.asset = reply.field("id", ID)
        upload.sent, upload.ready = True, reply.status == 200  # 202: it is being processed
        await save(upload)

    async def is_processed(self, access: Access, media: Media, upload: Upload, meter: Meter) -> bool:
        if not upload.ready:
            await meter.spend()
            path = f"/api/v1/media/{upload.asset}"
            reply = await self._call("GET", self._base(access.server), path, access.token)
            upload.ready = reply.status == 200  # 206: not yet
        return upload.ready

    async def publish(
        self, access: Access, post: Post, attachments: Sequence[Attachment], meter: Meter
    ) -> Published:
        base = self._base(access.server)
        for each in attachments:
            if each.alt_text:
                await meter.spend()
                body = {"description": each.alt_text}
                await self._call("PUT", base, f"/api/v1/media/{each.asset}", access.token, json=body)
        await meter.spend()
        status = {
            "status": post.content.text,
            "media_ids": [each.asset for each in attachments],
            "visibility": post.content.visibility.lower(),
        }
        key = {"Idempotency-Key": f"{post.id}-{post.digest}"}
        created = await self._call("POST", base, "/api/v1/statuses", access.token, json=status, headers=key)
        try:
            return self._published(created)
        except AnswerUnusable as problem:  # it was accepted
            raise OutcomeUnknown(problem.message, code=problem.code) from None

    async def find(self, access: Access, post: Post, since: datetime, meter: Meter) -> Published | None:
        base, text, older = self._base(access.server), _normalised(post.content.text), ""
        if not text:
            raise OutcomeUnknown("a post without text cannot be told from others", code="not_comparable")
        while True:
            await meter.spend()
            query = f"limit={PAGE}&exclude_reblogs=true{older}"
            path = f"/api/v1/accounts/{access.author.urn}/statuses?{query}"
            page = await self._call("GET", base, path, access.token)
            statuses = answers.objects_of(page)
            for status in statuses:
                if answers.instant_of(status, "created_at", base) < since - CLOCK_SKEW:
                    return None
                await meter.spend()
                found = self._published(replace(page, body=status))
                source = await self._call("GET", base, f"/api/v1/statuses/{found.id}/source", access.token)
                if _normalised(source.field("text", ANY_TEXT)) == text:
                    return found
                older = f"&max_id={found.id}"
            if len(statuses) < PAGE:
                return None

    async def close(self) -> None:
        await self._client.close()

    def _base(self, server: str) -> str:
        """`mastodon.social` becomes `https://mastodon.social`."""
        found = SERVER.fullmatch(server.strip().lower())
        scheme = (found and found[1]) or "https"
        if found is None or (scheme == "http" and not self._settings.plain_http):
            raise Rejected(
                f"server: {server!r} is not a server; use for example mastodon.social", code="server"
            )
        if self._settings.servers and found[2] not in self._settings.servers:
            raise Rejected(f"server: {found[2]} is not one of the allowed servers", code="server")
        return f"{scheme}://{found[2]}"

    def _published(self, status: Reply) -> Published:
        return Published(status.field("id", ID), self._link(status.body, "url"))

    def _link(self, body: Mapping[str, Any], name: str) -> str | None:
        return answers.address_of(body, name, plain_http=self._settings.plain_http)

    async def _registered(self, base: str, redirect_uri: str) -> Registration:
        """Momentum registers itself at each server once, and remembers it for all processes."""
        for app in self._registrations():
            if (app.server, app.redirect_uri) == (base, redirect_uri):
                return app
        fields = {"client_name": "Momentum", "redirect_uris": redirect_uri, "scopes": " ".join(SCOPES)}
        answer = checked(await self._exchange("POST", base, "/api/v1/apps", data=fields))
        client_id, secret = (answer.field(name, SECRET) for name in ("client_id", "client_secret"))
        app = Registration(base, redirect_uri, client_id, secret)
        self._remember(app)
        return app

    def _registrations(self) -> list[Registration]:
        path = self._settings.apps_file
        return [Registration(**each) for each in json.loads(path.read_text())] if path.exists() else []

    def _remember(self, app: Registration) -> None:
        path = self._settings.apps_file
        draft = path.with_name(f"{path.name}.{os.getpid()}")
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump([asdict(each) for each in [*self._registrations(), app]], file, indent=2)
        draft.replace(path)

    async def _call(self, method: str, base: str, path: str, token: str, **options: Any) -> Reply:
        return checked(await self._exchange(method, base, path, token, **options))

    async def _exchange(
        self,
        method: str,
        base: str,
        path: str,
        token: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        **body: Any,
    ) -> Reply:
        sent = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
        try:
            answer = await self._client.request(method, f"{base}{path}", headers=sent, **body)
        except CallFailed as failure:
            if not failure.allowed:
                raise Rejected(f"server: {base} may not be called", code="server") from None
            if failure.sent:
                raise TryLater(f"{base} did not answer: {failure}", code="no_answer") from None
            raise NotSent(f"{base} cannot be reached: {failure}", code="no_connection") from None
        # Without a token the caller has no account there: what the server says is not for them.
        said = answers.parsed(answer.body) if token or answer.status < 300 else None
        return Reply(base, answer.status, answer.headers, said)


def _normalised(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())
