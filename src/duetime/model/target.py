"""An HTTP target: as a caller writes it, checked field by field; as it is shown; as it is stored.

Secrets come in as text and are sealed (encrypted) before they are stored. They are never shown, sealed or
not. Input of callers is never read as sealed; otherwise a caller with a sealed secret could have it sent to a
server of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

from duetime.errors import InvalidInput, InvalidPayload
from duetime.model import duration, signing, url
from duetime.model import headers as header_grammar
from duetime.model.codec import decode, encode
from duetime.model.headers import Headers, is_secret
from duetime.model.instant import SECOND, Micros
from duetime.model.url import Url

HTTP = "@http"
# The target of jobs whose address an operator must list: only nodes with a list claim them. Callers see HTTP.
LISTED = f"{HTTP}:listed"
METHODS = ("POST", "GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
WITHOUT_BODY = frozenset({"GET", "HEAD"})
DEFAULT_TIMEOUT, MAX_TIMEOUT = 30 * SECOND, 3_600 * SECOND
MAX_CODES = 32
HIDDEN = "***"
SIGNING = "signing_secret"  # also its name when sealed: no secret header may have it
SECRETS = ("secret_headers", SIGNING)
FIELDS = (
    "type",
    "url",
    "method",
    "headers",
    "secret_headers",
    SIGNING,
    "body",
    "timeout",
    "success",
    "async",
)
_CODES = re.compile(r"([1-5])xx|([1-5][0-9]{2})-([1-5][0-9]{2})")
Seal = Callable[[str, str], str]
NO_KEY = (
    "is a secret, which cannot be stored without a secret key: set DUETIME_SECRET_KEYS=k1:BASE64, "
    "the same on every node (openssl rand -base64 32 makes one)"
)


class Body(StrEnum):
    """How the payload is sent."""

    JSON = "json"
    RAW = "raw"  # the payload is text and is sent unchanged


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that is never shown: plain as the caller wrote it, or sealed for the store."""

    text: str = field(repr=False)
    sealed: bool = False
    given_in: str = "secret_headers"  # the field of the target in which the caller wrote it

    def __str__(self) -> str:
        return HIDDEN

    @property
    def key_id(self) -> str:
        """Of the service key that sealed it."""
        return self.text.split(".")[1] if self.sealed else ""

    def place(self, name: str, field: str = "target") -> str:
        """The field that an error about it names."""
        return f"{field}.{SIGNING}" if name == SIGNING else f"{field}.{self.given_in}.{name}"


@dataclass(frozen=True, slots=True)
class HttpTarget:
    url: Url
    method: str = "POST"
    headers: Headers = ()
    hidden: tuple[tuple[str, Secret], ...] = ()  # by header name; the signing secret under its own name
    body: Body = Body.JSON
    timeout: Micros = DEFAULT_TIMEOUT
    success: tuple[tuple[int, int], ...] = ((200, 299),)  # ranges, both ends included
    reports: bool = False  # "async": may respond 202 and report later

    @property
    def name(self) -> str:
        """The target of its jobs."""
        return _stored_name(*self.url.origin_key)

    @classmethod
    def from_json(cls, value: Any, field: str = "target") -> HttpTarget:
        """Reads the input of a caller. Every error names its field."""
        given = _known(value, field)
        written = header_grammar.read(given.get("headers", {}), f"{field}.headers")
        plain = tuple((name, text) for name, text in written if not is_secret(name))
        hidden = (
            *((name, Secret(text, given_in="headers")) for name, text in written if is_secret(name)),
            *_secrets(given, field),
        )
        named = [name.lower() for name, _ in (*plain, *hidden)]
        if len(set(named)) < len(named):
            raise InvalidInput(f"{field}.secret_headers", "names a header that is also in `headers`")
        method = _method(given.get("method", "POST"), f"{field}.method")
        return cls(
            url.parse(given.get("url"), f"{field}.url"),
            method,
            plain,
            hidden,
            _body(given.get("body", Body.JSON), method, f"{field}.body"),
            _timeout(given.get("timeout"), f"{field}.timeout"),
            _success(given.get("success", ["2xx"]), f"{field}.success"),
            _boolean(given.get("async", False), f"{field}.async"),
        )

    @classmethod
    def received(cls, value: Any, before: bytes | None, sealer: Callable[[], Seal | None]) -> HttpTarget:
        """Reads the input of a caller for the store: secrets are sealed, and an edit of the target `before`
        keeps those that it leaves out. `sealer` is called only if there are secrets; without a key it
        returns None, and the target cannot be stored."""
        target = cls.from_json(value)
        if before is not None:
            left_out = [name for name in SECRETS if name not in value]
            target = target.keeping_secrets_of(cls.from_spec(before), left_out=left_out)
        seal = sealer() if target.hidden else None
        return target if seal is None else target.sealed(seal)

    @classmethod
    def from_spec(cls, spec: bytes) -> HttpTarget:
        """Reads what `to_spec` wrote. The same checks apply, because they may be stricter now."""
        stored = decode(spec)
        if not isinstance(stored, dict):
            raise InvalidInput("target", "must be an object")
        sealed = stored.pop("sealed", {})
        shown = {*stored.pop("secret_headers", {}), *([SIGNING] if stored.pop(SIGNING, None) else [])}
        if shown != set(sealed):
            raise InvalidInput("target.secret_headers", "were not stored with the job: submit it again")
        target = cls.from_json(stored)
        return replace(
            target, hidden=tuple((name, Secret(text, sealed=True)) for name, text in sealed.items())
        )

    def to_json(self) -> dict[str, Any]:
        """The form that may be shown: secrets by name only."""
        shown: dict[str, Any] = {
            "type": "http",
            "url": str(self.url),
            "method": self.method,
            "headers": dict(self.headers),
        }
        if names := [name for name, _ in self.hidden if name != SIGNING]:
            shown["secret_headers"] = dict.fromkeys(names, HIDDEN)
        if any(name == SIGNING for name, _ in self.hidden):
            shown[SIGNING] = HIDDEN
        return shown | {
            "body": str(self.body),
            "timeout": duration.show(self.timeout),
            "success": [_show_codes(first, last) for first, last in self.success],
            "async": self.reports,
        }

    def to_spec(self) -> bytes:
        """The form that is stored. Rejects a secret that is not sealed, because the store would hold it as
        plain text."""
        for name, secret in self.hidden:
            if not secret.sealed:
                raise InvalidInput(secret.place(name), NO_KEY)
        sealed = {name: secret.text for name, secret in self.hidden}
        return encode(self.to_json() | ({"sealed": sealed} if sealed else {}))

    def sealed(self, seal: Seal) -> HttpTarget:
        """The same target, its secrets sealed by `seal(name, text)`."""
        self._refuse_stand_ins(self.hidden, "target")
        done = tuple(
            (name, one if one.sealed else Secret(seal(name, one.text), sealed=True))
            for name, one in self.hidden
        )
        return replace(self, hidden=done)

    def keeping_secrets_of(
        self, before: HttpTarget, field: str = "target", left_out: Collection[str] = ()
    ) -> HttpTarget:
        """Keeps the earlier secret where a caller sent back the *** we show, or left out a hidden field
        (`left_out`). The secret must go to the same host."""
        old = dict(before.hidden)
        kept = tuple(
            (name, old.get(name, one) if one.text == HIDDEN and not one.sealed else one)
            for name, one in self.hidden
        )
        written = {name.lower() for name, _ in (*self.headers, *self.hidden)}
        kept += tuple(
            (name, one)
            for name, one in before.hidden
            if _field_of(name) in left_out and name.lower() not in written
        )
        self._refuse_stand_ins(kept, field)
        if self.url.origin != before.url.origin:
            for name, one in kept:
                if one.sealed:
                    raise InvalidInput(
                        one.place(name, field),
                        "must be set again or removed, because the target moves to another host",
                    )
        return replace(self, hidden=kept)

    @staticmethod
    def _refuse_stand_ins(hidden: tuple[tuple[str, Secret], ...], field: str) -> None:
        for name, one in hidden:
            if one.text == HIDDEN and not one.sealed:
                raise InvalidInput(
                    one.place(name, field),
                    f"{HIDDEN} stands for a secret that does not exist: write its value",
                )

    def content(self, payload: bytes) -> bytes | None:
        """The bytes to send; None for no body."""
        if self.method in WITHOUT_BODY or payload == b"null":
            return None
        if self.body is Body.JSON:
            return payload
        text = decode(payload)
        if not isinstance(text, str):
            raise InvalidPayload("payload", 'must be text, because the target\'s body is "raw"')
        return text.encode()

    def succeeded(self, status: int) -> bool:
        return any(first <= status <= last for first, last in self.success)


@lru_cache(4_096)  # most jobs go to few hosts
def _stored_name(scheme: str, host: str, port: int) -> str:
    written = Url(scheme, host, port, "/")
    return HTTP if url.PUBLIC_INTERNET.refusal_as_written(written) is None else LISTED


def shown_name(name: str) -> str:
    """The target as callers see and filter it: which nodes may call an address is not their matter."""
    return HTTP if name == LISTED else name


def stored_names(shown: str) -> tuple[str, str]:
    """The targets that callers see under this name; one of them twice if there is no other."""
    return shown, LISTED if shown == HTTP else shown


def key_ids(spec: bytes | None) -> set[str]:
    """The ids of the service keys that a stored target needs."""
    sealed = {} if spec is None else decode(spec).get("sealed", {})
    return {Secret(text, sealed=True).key_id for text in sealed.values()}


def _field_of(hidden: str) -> str:
    return SIGNING if hidden == SIGNING else "secret_headers"


def _known(value: Any, field: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInput(
            field, 'must be an object, like {"type": "http", "url": "https://agent.example/run"}'
        )
    for name in value:
        if name not in FIELDS:
            raise InvalidInput(
                f"{field}.{name}" if str(name).isidentifier() else field,
                f"is unknown: use {', '.join(FIELDS)}",
            )
    if value.get("type", "http") != "http":
        raise InvalidInput(f"{field}.type", 'must be "http"')
    if "url" not in value:
        raise InvalidInput(f"{field}.url", "is missing: give the URL to call")
    return value


def _secrets(given: Mapping[str, Any], field: str) -> tuple[tuple[str, Secret], ...]:
    hidden = [
        (name, Secret(text))
        for name, text in header_grammar.read(given.get("secret_headers", {}), f"{field}.secret_headers")
    ]
    if any(name.lower() == SIGNING for name, _ in hidden):
        raise InvalidInput(f"{field}.secret_headers", f"{SIGNING} is a field of the target, not a header")
    if given.get(SIGNING) is not None:
        if given[SIGNING] != HIDDEN:
            signing.read_secret(given[SIGNING], f"{field}.{SIGNING}")
        hidden.append((SIGNING, Secret(given[SIGNING])))
    return tuple(hidden)


def _method(value: Any, field: str) -> str:
    if not isinstance(value, str) or value.upper() not in METHODS:
        raise InvalidInput(field, f"must be one of {', '.join(METHODS)}")
    return value.upper()


def _body(value: Any, method: str, field: str) -> Body:
    if value not in list(Body):
        raise InvalidInput(field, 'must be "json", or "raw" to send a text payload unchanged')
    if value == Body.RAW and method in WITHOUT_BODY:
        raise InvalidInput(field, f"cannot be sent with {method}: use POST, or leave it out")
    return Body(value)


def _timeout(value: Any, field: str) -> Micros:
    if value is None:
        return DEFAULT_TIMEOUT
    timeout = duration.positive(value, field)
    if timeout > MAX_TIMEOUT:
        raise InvalidInput(
            field, "must be 1h or less: a target that takes longer can respond 202 and report later"
        )
    return timeout


def _success(value: Any, field: str) -> tuple[tuple[int, int], ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_CODES:
        raise InvalidInput(field, f'must be a list of 1 to {MAX_CODES} codes, like ["2xx", 404]')
    return tuple(_codes(entry, field) for entry in value)


def _codes(entry: Any, field: str) -> tuple[int, int]:
    if isinstance(entry, int) and not isinstance(entry, bool) and 100 <= entry <= 599:
        return entry, entry
    found = _CODES.fullmatch(entry) if isinstance(entry, str) else None
    if found is None:
        raise InvalidInput(field, 'must hold codes from 100 to 599, like 204, "2xx" or "200-204"')
    first, last = (int(found[1] + "00"), int(found[1] + "99")) if found[1] else (int(found[2]), int(found[3]))
    if first > last:
        raise InvalidInput(field, f"{entry} ends before it starts")
    return first, last


def _show_codes(first: int, last: int) -> int | str:
    if first == last:
        return first
    return f"{first // 100}xx" if first % 100 == 0 and last == first + 99 else f"{first}-{last}"


def _boolean(value: Any, field: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(field, "must be true or false")
    return value
