"""Mastodon, as a platform: many servers, one client.

The create call has an `Idempotency-Key`: for an hour the server answers a repeated call with the first post.
A lost answer therefore leaves no doubt, and the call is simply tried again.
"""

from __future__ import annotations

import asyncio
import json
import os
import unicodedata
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import aiohttp

from momentum import __version__
from momentum.errors import Problem
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
    Throttled,
    TryLater,
    Upload,
)

SCOPES = ("read:accounts", "read:statuses", "write:media", "write:statuses")
USER_AGENT = {"User-Agent": f"Momentum/{__version__}"}
TIMEOUT = aiohttp.ClientTimeout(total=None, connect=15, sock_read=60)
CLOCK_SKEW = timedelta(seconds=60)  # between the server and this machine
PAGE = 40
RULES_LIFETIME = timedelta(hours=12)  # of what a server said about its limits
RULES_RETRY = timedelta(minutes=5)  # after a server said nothing
RULES_TIMEOUT = 5.0  # seconds; a person waits
MB = 1024 * 1024
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
    apps_file: Path = Path(
        "momentum-mastodon.json"
    )  # Momentum's registrations at servers, with their secrets
    servers: tuple[str, ...] = ()  # the only ones that people may connect to; empty: all
    plain_http: bool = False  # for servers on this machine


@dataclass(frozen=True, slots=True)
class Registration:
    """Momentum as an app of one server."""

    server: str
    redirect_uri: str
    client_id: str
    client_secret: str


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: Any


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
        self._session: aiohttp.ClientSession | None = None
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
                base = self._base(server)
                answer = _checked(await self._exchange("GET", f"{base}/api/v2/instance"), base)
            limit = answer["configuration"]["statuses"]["max_characters"]
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
        reply = await self._exchange("POST", f"{base}/oauth/token", data=fields)
        if reply.status in (400, 401):
            raise ReconnectNeeded(
                f"{base} gave no access ({_message(reply)}). Connect it again.", code="refused"
            )
        answer = _checked(reply, base)
        granted = tuple(answer.get("scope", " ".join(SCOPES)).split())
        missing = [scope for scope in SCOPES if not {scope, scope.split(":")[0]} & set(granted)]
        if missing:
            text = (
                f"{base} did not grant {', '.join(missing)}. Connect the account again and allow everything."
            )
            raise ReconnectNeeded(text, code="scope_missing")
        return Grant(answer["access_token"], expires_at=None, scopes=granted)

    async def authors(self, grant: Grant, server: str = "") -> Sequence[Author]:
        base = self._base(server)
        account = await self._call("GET", base, "/api/v1/accounts/verify_credentials", grant.access_token)
        handle = f"@{account['username']}@{urlsplit(base).netloc}"
        name = account.get("display_name") or account["username"]
        return [Author(account["id"], name, picture=account.get("avatar"), handle=handle)]

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
                reply = await self._exchange("POST", f"{base}/oauth/revoke", data=fields)
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
        form = aiohttp.FormData()
        form.add_field("file", file.stream(), filename=file.media.name, content_type=file.media.type)
        base = self._base(access.server)
        reply = await self._exchange("POST", f"{base}/api/v2/media", access.token, data=form)
        upload.asset = str(_checked(reply, base)["id"])
        upload.sent, upload.ready = True, reply.status == 200  # 202: it is being processed
        await save(upload)

    async def is_processed(self, access: Access, media: Media, upload: Upload, meter: Meter) -> bool:
        if not upload.ready:
            await meter.spend()
            base = self._base(access.server)
            reply = await self._exchange("GET", f"{base}/api/v1/media/{upload.asset}", access.token)
            _checked(reply, base)
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
        return Published(str(created["id"]), created.get("url"))

    async def find(self, access: Access, post: Post, since: datetime, meter: Meter) -> Published | None:
        base, text, older = self._base(access.server), _normalised(post.content.text), ""
        if not text:
            raise OutcomeUnknown("a post without text cannot be told from others", code="not_comparable")
        while True:
            await meter.spend()
            query = f"limit={PAGE}&exclude_reblogs=true{older}"
            path = f"/api/v1/accounts/{access.author.urn}/statuses?{query}"
            page = await self._call("GET", base, path, access.token)
            for status in page:
                if datetime.fromisoformat(status["created_at"]) < since - CLOCK_SKEW:
                    return None
                await meter.spend()
                source = await self._call(
                    "GET", base, f"/api/v1/statuses/{status['id']}/source", access.token
                )
                if _normalised(source["text"]) == text:
                    return Published(str(status["id"]), status.get("url"))
            if len(page) < PAGE:
                return None
            older = f"&max_id={page[-1]['id']}"

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _base(self, server: str) -> str:
        """`mastodon.social` becomes `https://mastodon.social`."""
        parts = urlsplit(server if "://" in server else f"https://{server}")
        schemes = ("https", "http") if self._settings.plain_http else ("https",)
        if parts.scheme not in schemes or not parts.hostname or parts.path.strip("/") or parts.username:
            raise Rejected(
                f"server: {server!r} is not a server; use for example mastodon.social", code="server"
            )
        if self._settings.servers and parts.netloc not in self._settings.servers:
            raise Rejected(f"server: {parts.netloc} is not one of the allowed servers", code="server")
        return f"{parts.scheme}://{parts.netloc}"

    async def _registered(self, base: str, redirect_uri: str) -> Registration:
        """Momentum registers itself at each server once, and remembers it for all processes."""
        for app in self._registrations():
            if (app.server, app.redirect_uri) == (base, redirect_uri):
                return app
        fields = {"client_name": "Momentum", "redirect_uris": redirect_uri, "scopes": " ".join(SCOPES)}
        answer = _checked(await self._exchange("POST", f"{base}/api/v1/apps", data=fields), base)
        app = Registration(base, redirect_uri, answer["client_id"], answer["client_secret"])
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

    async def _call(self, method: str, base: str, path: str, token: str, **options: Any) -> Any:
        return _checked(await self._exchange(method, f"{base}{path}", token, **options), base)

    async def _exchange(
        self, method: str, url: str, token: str = "", *, headers: Mapping[str, str] | None = None, **body: Any
    ) -> Reply:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=TIMEOUT, headers=USER_AGENT)
        sent = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
        try:
            async with self._session.request(
                method, url, headers=sent, allow_redirects=False, **body
            ) as response:
                return Reply(response.status, response.headers.copy(), _parsed(await response.read()))
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotSent(f"{url} cannot be reached: {error}", code="no_connection") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            reason = str(error) or type(error).__name__
            raise TryLater(f"{url} did not answer: {reason}", code="no_answer") from error


def _checked(reply: Reply, base: str) -> Any:
    """The body of a success; everything else becomes a platform error."""
    if 200 <= reply.status < 300:
        return reply.body
    raise _error(reply, base)


def _error(reply: Reply, base: str) -> PlatformError:
    text = f"{base}: {_message(reply)}"
    details: Any = {"status": reply.status, "request_id": reply.headers.get("X-Request-Id")}
    match reply.status:
        case 401:
            return ReconnectNeeded(f"{text}. Connect the account again.", code="token_refused", **details)
        case 403 if "suspended" in text or "disabled" in text:
            return ReconnectNeeded(text, code="account_stopped", **details)
        case 422 if "not finished processing" in text:
            return TryLater(text, code="media_processing", **details)
        case 429:
            return Throttled(text, until=_reset_at(reply), code="rate_limit", **details)
        case status if 400 <= status < 500 and status != 408:
            return Rejected(text, code=f"status_{status}", **details)
    return TryLater(text, code="unavailable", **details)


def _reset_at(reply: Reply) -> datetime:
    try:
        return datetime.fromisoformat(reply.headers["X-RateLimit-Reset"])
    except (KeyError, ValueError):
        return datetime.now(UTC) + timedelta(minutes=5)  # the length of Mastodon's window


def _message(reply: Reply) -> str:
    body = reply.body if isinstance(reply.body, dict) else {}
    return str(body.get("error_description") or body.get("error") or f"status {reply.status}")[:500]


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except ValueError:
        return None


def _normalised(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())
