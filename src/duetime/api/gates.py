"""The two gates: on this machine everybody is let in, except pages of other sites; elsewhere whoever shows a key."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

from duetime.api.auth import LOCAL, Asked, Caller
from duetime.api.problems import Refused
from duetime.api.rates import FAILURES, STRANGERS, Buckets, bucket_of, too_many
from duetime.app.operations import Operations
from duetime.clock import monotonic_micros
from duetime.errors import DuetimeError
from duetime.model.addresses import Network
from duetime.model.apikey import NOBODY, ApiKey, digest_of, prefix_of
from duetime.model.instant import SECOND, Micros

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
FORWARDED = ("x-forwarded-for", "forwarded")
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_SITES = frozenset({"same-origin", "none"})  # "none": typed into the address bar
FRESH = 2 * SECOND  # how long a key is trusted before the store is asked again
MOST_KEYS, MOST_STRANGERS = 10_000, 1_000
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="duetime"'}
BEARER = "bearer "
USE_NOTED_EVERY = 60 * SECOND
Value = TypeVar("Value")


class LocalGate:
    """Only this machine can ask, and it may do everything. A browser on it may not be made to ask by pages from elsewhere: the name they
    had to use in `Host`, their own in `Origin`, or what the browser itself says of them gives them away (S42). Nor may a proxy let the
    world in by oversight."""

    local = True

    def __init__(self, public_url: str | None = None) -> None:
        parts = urlsplit(public_url or "")
        self._public_host = parts.netloc.lower() or None
        self._public_origin = f"{parts.scheme}://{parts.netloc}".lower() if parts.netloc else None

    async def admit(self, asked: Asked) -> Caller:
        headers = asked.headers
        host = headers.get("host", "").lower()
        if not _is_loopback(host) and host != self._public_host:
            remedy = "ask for localhost or 127.0.0.1, or name it in --public-url"
            raise Refused(403, "host_not_allowed", f"Host: in local mode the service does not answer to this name: {remedy}", "Host")
        if self._public_host is None and any(name in headers for name in FORWARDED):
            remedy = "start it with --auth keys, or name the proxy's address in --public-url"
            raise Refused(403, "proxy_not_allowed", f"in local mode the service is not there for those behind a proxy: {remedy}")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2].lower() != host and origin.lower() != self._public_origin:
            raise Refused(403, "origin_not_allowed", "Origin: pages of other sites may not use this service", "Origin")
        if asked.method not in SAFE_METHODS and headers.get("sec-fetch-site", "none") not in OWN_SITES:
            raise Refused(403, "origin_not_allowed", "Sec-Fetch-Site: pages of other sites may not use this service", "Sec-Fetch-Site")
        return LOCAL


class Known(NamedTuple):
    """A key as the store had it a moment ago."""

    key: ApiKey
    version: int  # of its record
    caller: Caller
    read_at: Micros  # on this machine's own clock
    refusal: str | None  # why it opens nothing any more: a code
    unnoted: bool  # the store does not know yet that it is in use


class KeyGate:
    """Lets in who shows a key. What the store said of a key is believed for two seconds; whoever shows wrong ones waits."""

    local = False

    def __init__(self, app: Operations, proxies: tuple[Network, ...] = (), failures: Buckets | None = None) -> None:
        self._app = app
        self._proxies = proxies
        self._known: dict[str, Known] = {}
        self._strangers: dict[str, Micros] = {}  # prefixes that are no key's, until when that is believed
        self._reading: dict[str, asyncio.Task[Known | None]] = {}
        self._failures = failures or Buckets()
        self._lookups = Buckets(most=1)

    async def admit(self, asked: Asked) -> Caller:
        text = _bearer(asked.headers)
        prefix = prefix_of(text)
        if prefix is None:
            raise self._failed(asked, "is not a key: keys look like dt_<prefix>_<secret>")
        known = self._known.get(prefix)
        digest = digest_of(text)
        if known is None or monotonic_micros() - known.read_at > FRESH:
            # Whoever holds a key that was good a moment ago does not wait for those who try wrong ones.
            if known is None or not hmac.compare_digest(known.key.digest, digest):
                self._refuse_blocked(asked)
            known = await self._ask_store(prefix)
        if not hmac.compare_digest(NOBODY if known is None else known.key.digest, digest) or known is None:
            raise self._failed(asked, "is not a key of this service: check it, or ask for a new one")
        if known.refusal is not None:
            raise self._late(known)
        if known.unnoted and self._known.get(prefix) is known:
            await self._note_use(known)
        return known.caller

    # -- what the store says ------------------------------------------------------------------------------------------
    async def _ask_store(self, prefix: str) -> Known | None:
        """One read, however many requests wait for it."""
        if self._strangers.get(prefix, 0) > monotonic_micros():
            return None
        reading = self._reading.get(prefix)
        if reading is None:
            if prefix not in self._known and (wait := self._lookups.spend("", STRANGERS)):
                raise too_many("too many unknown keys are being tried: repeat the request", wait)
            reading = self._reading[prefix] = asyncio.ensure_future(self._look_up(prefix))
            reading.add_done_callback(lambda done: self._ended(prefix, done))
        return await asyncio.shield(reading)

    def _ended(self, prefix: str, done: asyncio.Task[Known | None]) -> None:
        del self._reading[prefix]
        if not done.cancelled():
            done.exception()  # nobody may be left to hear it

    async def _look_up(self, prefix: str) -> Known | None:
        began = monotonic_micros()  # a revocation written while we read may have been missed
        found = await self._app.find_key(prefix)
        if found is None:
            self._known.pop(prefix, None)
            _keep(self._strangers, prefix, began + FRESH, MOST_STRANGERS)
            return None
        key, version = found
        now = await self._app.now()
        state = key.state(now)
        caller = Caller(key.tenant, key.scopes, key.prefix, key.name, key.expires_at, key.rate)
        unnoted = state == "active" and now - (key.last_used_at or 0) >= USE_NOTED_EVERY
        known = Known(key, version, caller, began, None if state == "active" else f"key_{state}", unnoted)
        _keep(self._known, prefix, known, MOST_KEYS)
        return known

    async def _note_use(self, known: Known) -> None:
        """At most once a minute for each key, whichever process it is shown to."""
        self._known[known.key.prefix] = known._replace(unnoted=False)  # first: others ask while this is being written
        with suppress(DuetimeError):  # it is a note: whoever asks is not made to suffer for it
            await self._app.note_key_use(known.key, known.version, await self._app.now())

    # -- refusals -----------------------------------------------------------------------------------------------------
    def _failed(self, asked: Asked, why: str) -> Refused:
        wait = self._failures.spend(bucket_of(self._client(asked)), FAILURES)
        if wait:
            return too_many("too many wrong keys from this address: repeat the request later", wait)
        return Refused(401, "key_invalid", f"Authorization: {why}", "Authorization", CHALLENGE)

    def _refuse_blocked(self, asked: Asked) -> None:
        wait = self._failures.wait(bucket_of(self._client(asked)), FAILURES)
        if wait:
            raise too_many("too many wrong keys from this address: repeat the request later", wait)

    @staticmethod
    def _late(known: Known) -> Refused:
        if known.refusal == "key_revoked":
            return Refused(401, "key_revoked", "Authorization: this key was revoked: ask for a new one", "Authorization", CHALLENGE)
        return Refused(401, "key_expired", "Authorization: this key has expired: ask for a new one", "Authorization", CHALLENGE)

    def _client(self, asked: Asked) -> str | None:
        return client_of(asked.peer, asked.headers.get("x-forwarded-for"), self._proxies)


def client_of(peer: str | None, forwarded: str | None, proxies: tuple[Network, ...]) -> str | None:
    """Who is behind the operator's own proxies: the last address that none of them has. What strangers write there counts for nothing
    (S53)."""
    hops = [hop.strip() for hop in (forwarded or "").split(",")][-16:]
    client = peer
    while hops and _among(client, proxies):
        client = hops.pop() or client
    return client


def _among(address: str | None, proxies: tuple[Network, ...]) -> bool:
    if not proxies:
        return False
    try:
        parsed = ip_address(address or "")
    except ValueError:
        return False
    return any(parsed in network for network in proxies)


def _bearer(headers: Mapping[str, str]) -> str:
    given = headers.get("authorization")
    if given is None:
        remedy = "send Authorization: Bearer dt_..., as `duetime key create` shows it"
        raise Refused(401, "key_missing", f"a key is needed: {remedy}", "Authorization", CHALLENGE)
    return given[len(BEARER) :].strip() if given[: len(BEARER)].lower() == BEARER else ""


def _is_loopback(host: str) -> bool:
    name, colon, port = host.rpartition(":")
    bare = name if colon and port.isdigit() else host
    if bare in LOOPBACK_NAMES:
        return True
    try:
        return ip_address(bare.strip("[]")).is_loopback  # a name may be made to point here, a number cannot
    except ValueError:
        return False


def _keep(kept: dict[str, Value], name: str, value: Value, most: int) -> None:
    """As the newest; the oldest goes when there are too many."""
    kept.pop(name, None)
    kept[name] = value
    if len(kept) > most:
        del kept[next(iter(kept))]
