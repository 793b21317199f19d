"""Channels: where notices go. Secrets of a channel are stored encrypted and never shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

from duetime.errors import Conflict, InvalidInput
from duetime.model.alert.quiet import QuietTime
from duetime.model.signing import read_secret
from duetime.model.url import parse as parse_url

MAX_TEXT = 2_000
MAX_RECIPIENTS = 50
# Of printable text. Python's parser of headers fails at some addresses with brackets.
_ADDRESS = re.compile(r"[^@\s<>,;:\"()\[\]\\]{1,64}@[^@\s<>,;:\"()\[\]\\]{1,255}")
Sealer = Callable[[str, str], str]  # the name of a secret and its text, to its encrypted form


class ChannelType(StrEnum):
    WEBHOOK = "webhook"
    SLACK = "slack"
    PAGERDUTY = "pagerduty"
    ALERTMANAGER = "alertmanager"
    EMAIL = "email"
    APPRISE = "apprise"


class Tls(StrEnum):
    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


class Field(NamedTuple):
    check: Callable[[Any, str], Any]
    required: bool = False
    secret: bool = False
    default: Any = None


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT or not value.isprintable():
        raise InvalidInput(field, f"must be text of 1 to {MAX_TEXT:,} printable characters")
    return value


def _signing(value: Any, field: str) -> str:
    read_secret(value, field)
    return str(value)


def _url(value: Any, field: str) -> str:
    parse_url(value, field)
    return str(value)


def _service_url(value: Any, field: str) -> str:
    text = _text(value, field)
    if not re.match(r"[A-Za-z][A-Za-z0-9+.\-]*://.", text):  # the text is a secret: it is not repeated
        raise InvalidInput(field, "must be a URL of Apprise, such as tgram://bottoken/chat")
    return text


def _address(value: Any, field: str) -> str:
    if not isinstance(value, str) or not value.isprintable() or not _ADDRESS.fullmatch(value):
        raise InvalidInput(field, f"{str(value)[:80]!r} is not an e-mail address, such as ops@example.org")
    return value


def _addresses(value: Any, field: str) -> list[str]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not 1 <= len(listed) <= MAX_RECIPIENTS:
        raise InvalidInput(field, f"must be a list of 1 to {MAX_RECIPIENTS} e-mail addresses")
    return [_address(one, field) for one in listed]


def _host(value: Any, field: str) -> str:
    text = _text(value, field)
    if not re.fullmatch(r"[A-Za-z0-9._:\-\[\]]{1,255}", text):
        raise InvalidInput(field, f"{text[:80]!r} is not a host name, such as smtp.example.org")
    return text


def _port(value: Any, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 65_535:
        raise InvalidInput(field, f"{value!r} must be a port from 1 to 65535")
    return value


def _tls(value: Any, field: str) -> str:
    if value not in tuple(Tls):
        raise InvalidInput(field, f"{value!r} is not one of {', '.join(Tls)}")
    return str(value)


FIELDS: dict[ChannelType, dict[str, Field]] = {
    ChannelType.WEBHOOK: {"url": Field(_url, True), "signing_secret": Field(_signing, secret=True)},
    ChannelType.SLACK: {"url": Field(_url, True, True)},
    ChannelType.PAGERDUTY: {
        "routing_key": Field(_text, True, True),
        "url": Field(_url, default="https://events.pagerduty.com/v2/enqueue"),
    },
    ChannelType.ALERTMANAGER: {"url": Field(_url, True), "authorization": Field(_text, secret=True)},
    ChannelType.EMAIL: {
        "host": Field(_host, True),
        "port": Field(_port, default=587),
        "tls": Field(_tls, default="starttls"),
        "sender": Field(_address, True),
        "to": Field(_addresses, True),
        "username": Field(_text),
        "password": Field(_text, secret=True),
    },
    ChannelType.APPRISE: {"url": Field(_service_url, True, True)},
}


@dataclass(frozen=True, slots=True)
class Channel:
    name: str
    type: ChannelType
    settings: Mapping[str, Any]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)  # encrypted
    quiet: tuple[QuietTime, ...] = ()
    enabled: bool = True
    version: int = 0

    def is_quiet(self, now: int) -> bool:
        return any(one.covers(now) for one in self.quiet)

    @staticmethod
    def received(name: str, value: Mapping[str, Any], before: Channel | None, seal: Sealer) -> Channel:
        """From a request. A secret that is left out keeps its value, null removes it; `seal` encrypts a new
        one."""
        kind = _type(value.get("type") or (None if before is None else before.type))
        fields = FIELDS[kind]
        others = ("type", "quiet", "enabled")
        if unknown := [one for one in value if one not in fields and one not in others]:
            known = ", ".join([*fields, "quiet", "enabled"])
            raise InvalidInput(unknown[0], f"a channel of type {kind} has no such field: known are {known}")
        removed = {one for one in fields if one in value and value[one] is None}
        for one in removed:
            if not fields[one].secret:
                raise InvalidInput(one, "is null: leave it out, or give a value")
            if fields[one].required:
                reason = f"cannot be removed: a channel of type {kind} needs it"
                raise InvalidInput(one, f"{reason}. Leave it out to keep it, or give a new one")
        given = {one: value[one] for one in fields if one in value and one not in removed}
        stored = before.secrets if before is not None and before.type is kind else {}
        old = {one: sealed for one, sealed in stored.items() if one not in removed}
        settings = {
            one: rule.check(given.get(one, rule.default), one)
            for one, rule in fields.items()
            if not rule.secret and (one in given or rule.required or rule.default is not None)
        }
        secrets = {
            one: seal(one, rule.check(given[one], one)) if one in given else old[one]
            for one, rule in fields.items()
            if rule.secret and (one in given or one in old)
        }
        for one, rule in fields.items():
            if rule.required and rule.secret and one not in secrets:
                raise Conflict(f"{one} is missing: a new channel of type {kind} needs it", one)
        if kind is ChannelType.EMAIL:
            secrets = _login(settings, secrets, "password" in given, "password" in removed)
        if before is not None and _receiver(settings) != _receiver(before.settings):
            _refuse_to_move([one for one in secrets if one not in given])
        quiet, enabled = value.get("quiet") or [], value.get("enabled", True)
        if not isinstance(quiet, list | tuple) or len(quiet) > 20:
            raise InvalidInput("quiet", "must be a list of up to 20 times")
        if not isinstance(enabled, bool):
            raise InvalidInput("enabled", f"{enabled!r} must be true or false")
        times = tuple(QuietTime.from_json(one, f"quiet[{place}]") for place, one in enumerate(quiet))
        return Channel(name, kind, settings, secrets, times, enabled)

    def to_json(self) -> dict[str, Any]:
        """As it is stored, with its encrypted secrets."""
        return {
            "type": self.type.value,
            "settings": dict(self.settings),
            "secrets": dict(self.secrets),
            "quiet": [one.to_json() for one in self.quiet],
            "enabled": self.enabled,
        }

    @staticmethod
    def from_json(name: str, value: Mapping[str, Any], version: int = 0) -> Channel:
        return Channel(
            name,
            ChannelType(value["type"]),
            value["settings"],
            value["secrets"],
            tuple(QuietTime.from_json(one) for one in value["quiet"]),
            value["enabled"],
            version,
        )

    def at_version(self, version: int) -> Channel:
        return replace(self, version=version)


def _receiver(settings: Mapping[str, Any]) -> tuple[Any, ...]:
    """Where secrets of the channel go; a URL that is a secret itself is not among the settings."""
    if "url" in settings:
        return (parse_url(settings["url"], "url").origin,)
    return tuple(settings.get(one) for one in ("host", "port", "username"))


def _refuse_to_move(kept: Sequence[str]) -> None:
    """Otherwise who may change the address, and may not read secrets, could have them sent to a server of
    their own."""
    if kept:
        reason = "must be given again or removed, because the channel moves to another receiver"
        raise Conflict(f"{kept[0]} {reason}", kept[0])


def _login(
    settings: Mapping[str, Any], secrets: dict[str, str], is_new: bool, is_removed: bool
) -> dict[str, str]:
    """The password belongs to the user name."""
    if "username" not in settings:
        if is_new:
            raise InvalidInput("password", "needs a username: give both or none")
        return {}
    if is_removed:
        raise InvalidInput("password", "belongs to the username: remove both, or give a new password")
    if "password" not in secrets:
        raise Conflict("password is missing: a new user name needs it", "password")
    if settings["tls"] == Tls.NONE:
        raise InvalidInput("tls", "none would send the password in clear text: use starttls or tls")
    return secrets


def _type(value: Any) -> ChannelType:
    try:
        return ChannelType(value)
    except ValueError:
        raise InvalidInput("type", f"{value!r} is not one of {', '.join(ChannelType)}") from None
